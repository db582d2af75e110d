// The timeline: allocated bytes by category, reserved, the process total and the card's memory.

const ROOM_FOR_CAPACITY = 1.6; // the card's memory is drawn where it is at most so many times the highest total

class Timeline {
  // `chosen(moment)` is called for a click, `pointed(moment, x)` as the pointer moves (nulls when it leaves),
  // `zoomedTo()` after every change of the range.
  constructor(box, run, palette, { chosen, pointed, zoomedTo }) {
    Object.assign(this, { box, run, palette, chosen, pointed, zoomedTo, plot: null, trace: null, moment: 0 });
    this.marker = element("div", { class: "marker" });
    new ResizeObserver(oncePerFrame(() => this.resize())).observe(box);
  }

  show(trace) {
    this.trace = trace;
    this.lanes = lanesOf(trace);
    this.highestTotal = mostOf(trace.reserved) + Math.max(0, ...trace.spans.map((span) => span.outside ?? 0));
    this.plot?.destroy();
    this.box.replaceChildren();
    this.plot = new uPlot(this.options(), this.data(0, trace.moments - 1), this.box);
    this.plot.over.append(this.marker);
    this.listen(this.plot.over);
    this.zoom(0, trace.moments);
  }

  // The x range in moments, [from, to).
  zoom(from, to) {
    const width = Math.min(Math.max(Math.round(to - from), 4), Math.max(this.trace.moments, 1));
    this.from = Math.min(Math.max(Math.round(from), 0), Math.max(this.trace.moments - width, 0));
    this.to = this.from + width;
    const data = this.data(this.from, Math.min(this.to, this.trace.moments) - 1);
    this.plot.batch(() => {
      this.plot.setData(data, false);
      this.plot.setScale("x", { min: this.from, max: this.to });
      this.plot.setScale("y", { min: 0, max: this.top(data) });
    });
    this.place();
    this.zoomedTo();
  }

  zoomAround(moment, factor) {
    const width = (this.to - this.from) * factor;
    const share = this.to > this.from ? (moment - this.from) / (this.to - this.from) : 0.5;
    const at = share >= 0 && share <= 1 ? share : 0.5;
    this.zoom(moment + 0.5 - at * width, moment + 0.5 + (1 - at) * width);
  }

  // Marks the moment, and moves the range along where it lies outside.
  mark(moment) {
    this.moment = moment;
    if (moment < this.from || moment >= this.to) {
      const width = this.to - this.from;
      this.zoom(moment - width / 2, moment + width / 2);
    }
    this.place();
  }

  get zoomed() {
    return this.to - this.from < this.trace.moments;
  }

  redraw() {
    this.plot?.redraw(false, true);
  }

  resize() {
    if (!this.plot) return;
    this.plot.setSize(this.size());
    this.zoom(this.from, this.to);
  }

  size() {
    return { width: Math.max(this.box.clientWidth, 200), height: innerWidth < 700 ? 280 : 360 };
  }

  data(from, to) {
    const moments = sampled(this.trace, from, to, Math.max(this.box.clientWidth - 60, 100));
    const held = moments.length ? [...moments, moments.at(-1)] : [];
    const [, ...series] = plotted(this.trace, held);
    return [moments.length ? [...moments, to + 1] : [], ...series];
  }

  top(data) {
    const most = Math.max(1, mostOf(data.at(-1)), mostOf(data.at(-2)));
    const capacity = this.run.capacity_bytes;
    return (capacity && this.showsCapacity() ? Math.max(most, capacity) : most) * 1.06;
  }

  showsCapacity() {
    const capacity = this.run.capacity_bytes;
    return capacity !== null && capacity <= this.highestTotal * ROOM_FOR_CAPACITY;
  }

  options() {
    const step = uPlot.paths.stepped({ align: 1 }),
      colour = (name) => () => this.palette.of(name);
    const area = (name) => ({
      paths: step,
      points: { show: false },
      width: 0.5,
      stroke: colour("surface"),
      fill: colour(name),
    });
    const line = (name, width, dash) => ({
      paths: step,
      points: { show: false },
      width,
      dash,
      stroke: colour(name),
    });
    const categories = [...this.trace.curves.keys()]
      .reverse()
      .map((number) => area(`c-${this.run.categories[number]}`));
    return {
      ...this.size(),
      padding: [this.lanes.length * (LANE + LANE_GAP) + 4, 10, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 5 },
        bind: { dblclick: () => () => this.zoom(0, this.trace.moments) },
      },
      select: { show: true },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [this.momentAxis(colour), this.byteAxis(colour)],
      series: [{}, ...categories, line("reserved", 1.5), line("total", 1, [4, 3])],
      hooks: {
        draw: [(plot) => this.drawOver(plot)],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.moved(plot)],
      },
    };
  }

  momentAxis(colour) {
    const values = (_, splits) => splits.map((each) => (Number.isInteger(each) ? formatCount(each) : ""));
    return {
      stroke: colour("muted"),
      font: "11px system-ui",
      size: 28,
      values,
      space: 80,
      grid: { show: false },
      ticks: { stroke: colour("line"), size: 4 },
    };
  }

  byteAxis(colour) {
    const incrs = Array.from({ length: 50 }, (_, power) => 2 ** power);
    const grid = { stroke: colour("line"), width: 1 };
    return {
      stroke: colour("muted"),
      font: "11px system-ui",
      size: 64,
      incrs,
      values: (_, splits) => byteTicks(splits),
      space: 44,
      grid,
      ticks: { show: false },
      gap: 6,
    };
  }

  drawOver(plot) {
    drawLanes(plot, this.lanes, this.palette);
    const capacity = this.run.capacity_bytes;
    if (!capacity || !this.showsCapacity()) return;
    const { ctx, bbox } = plot,
      y = Math.round(plot.valToPos(capacity, "y", true));
    ctx.save();
    ctx.fillStyle = this.palette.of("capacity");
    ctx.fillRect(bbox.left, y - devicePixelRatio, bbox.width, 1.5 * devicePixelRatio);
    ctx.restore();
  }

  selected(plot) {
    const { left, width } = plot.select;
    if (width < 2) return;
    const from = plot.posToVal(left, "x"),
      to = plot.posToVal(left + width, "x");
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.zoom(Math.floor(from), Math.ceil(to));
  }

  moved(plot) {
    const { left } = plot.cursor;
    this.pointed(left === null || left < 0 ? null : this.momentAt(left), left);
  }

  // A pixel may stand for many moments: the highest of them is the one that is seen there.
  momentAt(left) {
    const last = this.trace.moments - 1,
      inside = (moment) => Math.min(Math.max(Math.floor(moment), 0), last);
    const first = inside(this.plot.posToVal(left, "x")),
      next = inside(this.plot.posToVal(left + 1, "x"));
    return highest(this.trace.allocated, first, Math.max(first, next - 1));
  }

  listen(over) {
    let pressed = 0;
    over.addEventListener("mousedown", (event) => (pressed = event.clientX));
    over.addEventListener("click", (event) => {
      if (Math.abs(event.clientX - pressed) > 4 || !this.trace.moments) return;
      this.chosen(this.momentAt(event.clientX - over.getBoundingClientRect().left));
    });
  }

  place() {
    const left = this.plot.valToPos(this.moment + 0.5, "x");
    this.marker.style.transform = `translateX(${left}px)`;
    this.marker.hidden = this.moment < this.from || this.moment >= this.to;
  }
}

function mostOf(values) {
  return values.reduce((most, each) => Math.max(most, each ?? 0), 0);
}

// Ticks share the unit of the largest; only the topmost one names it.
function byteTicks(splits) {
  const largest = splits.at(-1) ?? 0;
  const [unit, factor] = UNITS.find(([, each]) => largest >= each) ?? ["B", 1];
  return splits.map(
    (each, place) => `${+(each / factor).toFixed(3)}${place === splits.length - 1 ? ` ${unit}` : ""}`,
  );
}
