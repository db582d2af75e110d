// The parts of the page that show one history, put together: the timeline and what is live at a moment of it.

class Page {
  constructor() {
    this.traces = new Map();
    this.hover = new Hover(byId("hover"));
    this.timeline = new Timeline(byId("chart"), run, palette, {
      chosen: (moment) => this.choose(moment),
      pointed: (moment, left) => this.hover.show(this.timeline, moment, left),
      zoomedTo: () => this.enable(),
    });
    this.icicle = new Icicle(byId("icicle"), (words, node) => this.tellPart(words, node));
    this.grouping = new Grouping(byId("grouping"), () => this.regroup());
    this.describe = oncePerFrame(() => this.showMoment());
    this.listen();
  }

  // Shows one history; it is unpacked the first time.  What was asked for last is shown in the end.
  async open(number) {
    this.asked = number;
    try {
      if (!this.traces.has(number))
        this.traces.set(number, await readTrace(byId(`trace-${number}`).textContent));
      if (this.asked === number) this.show(number);
    } catch (error) {
      byId("chart").replaceChildren(
        element("p", { class: "notice" }, `The history cannot be shown: ${error.message}`),
      );
      throw error;
    }
  }

  show(number) {
    this.number = number;
    this.trace = this.traces.get(number);
    this.grouping.offer(groupingsOf(this.trace));
    byId("stages-table").replaceChildren(...tablesOf(this.trace.stages));
    byId("layers-table").replaceChildren(...tablesOf(this.trace.layers));
    byId("chart").setAttribute("aria-valuemax", Math.max(this.trace.moments - 1, 0));
    byId("moment").hidden = !this.trace.moments;
    if (!this.trace.moments) return this.showNothing();
    this.timeline.show(this.trace);
    byId("legend").replaceChildren(...legendOf(this.trace, this.timeline));
    return this.choose(Math.max(this.trace.peak, 0));
  }

  showNothing() {
    byId("chart").replaceChildren(element("p", { class: "note" }, "This history holds no event."));
    byId("legend").replaceChildren();
  }

  choose(moment) {
    this.moment = Math.min(Math.max(moment, 0), this.trace.moments - 1);
    this.timeline.mark(this.moment);
    const chart = byId("chart");
    chart.setAttribute("aria-valuenow", this.moment);
    chart.setAttribute("aria-valuetext", momentWords(this.trace, this.moment));
    this.describe();
    this.enable();
  }

  // Zooms to a stretch of moments, and chooses the highest in it.
  look(from, to) {
    if (to <= from) return this.choose(from);
    this.timeline.zoom(from, to);
    this.choose(highest(this.trace.allocated, from, to - 1));
    return byId("timeline").scrollIntoView({ block: "nearest" });
  }

  showMoment() {
    const { trace, moment } = this;
    const event = eventWords(trace, moment);
    byId("moment-text").replaceChildren(
      element("b", {}, figureWords(trace, moment)),
      element("span", {}, momentWords(trace, moment)),
      element("span", { class: "event" }, event),
    );
    byId("ledger").replaceChildren(ledger(trace, moment));
    this.rows = trace.liveAt(moment);
    this.showIcicle();
    if (byId("largest").open) this.showLargest();
  }

  showIcicle() {
    if (this.rows.length) this.icicle.show(this.trace, treeOf(this.trace, this.rows, this.grouping.chosen));
    else byId("icicle").replaceChildren(element("p", { class: "note" }, "Nothing is live at this moment."));
    this.tellPart(null, null);
  }

  showLargest() {
    byId("largest-table").replaceChildren(largestTable(this.trace, this.rows));
  }

  tellPart(words, node) {
    const source = node?.kind === undefined ? "" : this.trace.lineOf(node.kind)[1];
    byId("icicle-text").replaceChildren(
      words ?? "Point at a part to read it, click to go into it.",
      ...(source ? [element("code", {}, source)] : []),
    );
  }

  regroup() {
    this.icicle.path = [];
    this.showIcicle();
  }

  enable() {
    byId("go-back").disabled = this.moment === 0;
    byId("go-on").disabled = this.moment === this.trace.moments - 1;
    byId("zoom-all").disabled = byId("zoom-out").disabled = !this.timeline.zoomed;
  }

  zoom(factor) {
    if (factor === null) this.timeline.zoom(0, this.trace.moments);
    else this.timeline.zoomAround(this.moment, factor);
  }

  listen() {
    const actions = {
      "go-peak": () => this.choose(this.trace.peak),
      "go-back": () => this.choose(this.moment - 1),
      "go-on": () => this.choose(this.moment + 1),
      "zoom-in": () => this.zoom(0.5),
      "zoom-out": () => this.zoom(2),
      "zoom-all": () => this.zoom(null),
    };
    for (const [id, action] of Object.entries(actions))
      byId(id).addEventListener("click", () => this.trace?.moments && action());
    byId("chart").addEventListener("keydown", (event) => this.pressed(event));
    byId("chart").addEventListener("mouseleave", () => this.hover.show(this.timeline, null, null));
    byId("largest").addEventListener(
      "toggle",
      () => byId("largest").open && this.trace && this.showLargest(),
    );
    byId("trace").addEventListener("change", (event) => this.open(Number(event.target.value)));
    new ResizeObserver(oncePerFrame(() => this.icicle.root && this.icicle.draw())).observe(byId("icicle"));
  }

  pressed(event) {
    if (!this.trace?.moments || event.ctrlKey || event.metaKey || event.altKey) return;
    const wide = Math.max(1, Math.round((this.timeline.to - this.timeline.from) / 20)),
      step = event.shiftKey ? wide : 1;
    const actions = {
      ArrowLeft: () => this.choose(this.moment - step),
      ArrowRight: () => this.choose(this.moment + step),
      ArrowDown: () => this.choose(this.moment - step),
      ArrowUp: () => this.choose(this.moment + step),
      PageDown: () => this.choose(this.phaseFrom(1)),
      PageUp: () => this.choose(this.phaseFrom(-1)),
      Home: () => this.choose(0),
      End: () => this.choose(this.trace.moments - 1),
      p: () => this.choose(this.trace.peak),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.zoom(null),
      Escape: () => this.zoom(null),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    action();
    event.preventDefault();
  }

  // The first moment of the next span that has one, or of this one or the one before.
  phaseFrom(direction) {
    const firsts = this.trace.spans.map((span) => span.first).filter((first) => first < this.trace.moments);
    if (direction > 0) return firsts.find((first) => first > this.moment) ?? this.trace.moments - 1;
    return firsts.findLast((first) => first < this.moment) ?? 0;
  }
}

function tablesOf(specs) {
  return specs.map((spec) => (spec.text ? element("p", { class: "note" }, spec.text) : dataTable(spec)));
}
