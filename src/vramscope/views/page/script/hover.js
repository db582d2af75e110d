// What is live under the pointer, by category, beside it.

class Hover {
  constructor(box) {
    this.box = box;
    this.show = oncePerFrame((...given) => this.draw(...given));
  }

  // Hidden where the moment is null; `left` is the pointer's place in the plot.
  draw(timeline, moment, left) {
    const { trace } = timeline;
    this.box.hidden = moment === null || !trace?.moments;
    if (this.box.hidden) return;
    this.box.replaceChildren(
      element("p", {}, momentWords(trace, moment)),
      element(
        "table",
        {},
        element("tbody", {}, ...this.categories(trace, moment)),
        element("tbody", {}, ...this.sums(trace, moment)),
      ),
    );
    this.place(timeline.plot.over.getBoundingClientRect(), left);
  }

  // In the order in which they lie upon each other.
  categories(trace, moment) {
    const held = [...trace.categoriesAt(moment)].filter(([, size]) => size);
    return held
      .reverse()
      .map(([category, size]) => hoverRow(`c-${run.categories[category]}`, categoryWords(category), size));
  }

  sums(trace, moment) {
    const total = totalAt(trace, moment);
    const rows = [
      hoverRow("", "allocated", trace.allocated[moment]),
      hoverRow("line-reserved", "reserved", trace.reserved[moment]),
    ];
    return total === null ? rows : [...rows, hoverRow("line-total", "process total", total)];
  }

  // To the right of the pointer, or to its left where there is no room.
  place(plot, left) {
    const around = this.box.offsetParent.getBoundingClientRect(),
      width = this.box.offsetWidth;
    const x = plot.left - around.left + left;
    const fits = x + 16 + width < around.width;
    this.box.style.left = `${Math.max(4, fits ? x + 16 : x - 16 - width)}px`;
    this.box.style.top = `${plot.top - around.top + 8}px`;
  }
}

function hoverRow(colour, label, size) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, mark(colour), label),
    element("td", { class: "number" }, formatBytes(size)),
  );
}
