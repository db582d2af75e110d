// What is live as an icicle: the allocated bytes on top, what they consist of below; a click goes into a part.

const ROW = 22,
  NARROWEST = 1.5,
  LETTER = 6.5,
  WITH_TEXT = 46; // pixels; from WITH_TEXT on a text may be cut

class Icicle {
  // `told(node, whole)` is called for the part that is pointed at or has the focus, with null for none.
  constructor(box, told) {
    Object.assign(this, { box, told, path: [], shown: [] });
    box.addEventListener("keydown", (event) => this.pressed(event));
    box.addEventListener("click", (event) => this.clicked(event));
    for (const kind of ["mouseover", "focusin"])
      box.addEventListener(kind, (event) => this.tell(event.target));
    for (const kind of ["mouseleave", "focusout"]) box.addEventListener(kind, () => this.told(null));
  }

  show(trace, tree) {
    Object.assign(this, { trace, tree });
    const root = d3.hierarchy(tree, (each) => [...each.below.values()]);
    root.value = tree.size;
    root.each((each) => (each.value = each.data.size));
    root.sort((a, b) => b.value - a.value);
    this.root = d3.partition()(root);
    this.draw();
  }

  // The part that the path leads to, as far as it exists at this moment.
  zoomedTo() {
    let found = this.root;
    for (const name of this.path) {
      const next = found.children?.find((each) => each.data.name === name);
      if (!next) break;
      found = next;
    }
    return found;
  }

  draw() {
    const focus = this.zoomedTo(),
      width = this.box.clientWidth,
      scale = 1 / Math.max(focus.x1 - focus.x0, 1e-12);
    this.shown = [];
    focus
      .ancestors()
      .reverse()
      .forEach((each) => this.shown.push({ part: each, left: 0, share: 1 }));
    const inside = (each) => {
      for (const child of each.children ?? []) {
        const share = (child.x1 - child.x0) * scale;
        if (share * width < NARROWEST) continue;
        this.shown.push({ part: child, left: (child.x0 - focus.x0) * scale, share });
        inside(child);
      }
    };
    inside(focus);
    const deepest = Math.max(...this.shown.map(({ part }) => part.depth));
    this.box.style.height = `${(deepest + 1) * ROW}px`;
    this.box.replaceChildren(...this.shown.map((each, number) => this.cell(each, number, width)));
    this.focusable(this.shown.findIndex(({ part }) => part === focus));
  }

  cell({ part, left, share }, number, width) {
    const { data } = part,
      leaf = data.kind !== undefined;
    const cell = element("div", {
      class: leaf ? "cell leaf" : "cell",
      role: "treeitem",
      tabindex: -1,
      "aria-level": part.depth + 1,
      "aria-label": this.words(part),
      "data-number": number,
    });
    if (!leaf) cell.setAttribute("aria-expanded", share * width >= NARROWEST);
    Object.assign(cell.style, {
      left: `${100 * left}%`,
      width: `${100 * share}%`,
      top: `${part.depth * ROW}px`,
    });
    if (leaf) cell.classList.add(`c-${run.categories[this.trace.category[data.kind]]}`);
    else cell.style.setProperty("--mix", this.mix(data));
    const text = this.label(data, share * width);
    if (share * width >= Math.min(WITH_TEXT, LETTER * text.length + 12))
      cell.append(element("span", { class: "cell-text" }, text));
    return cell;
  }

  // As much of name, count and size as there is room for: a file without its folder, a tensor without its module.
  label(data, width) {
    const leaf = data.kind !== undefined,
      times = leaf && data.count > 1 ? ` × ${formatCount(data.count)}` : "";
    const short = data.name.slice(data.name.lastIndexOf(leaf ? "." : "/") + 1);
    const texts = [
      `${data.name}${times} · ${formatBytes(data.size)}`,
      `${data.name}${times}`,
      `${short}${times}`,
    ];
    return texts.find((text) => width > LETTER * text.length + 12) ?? texts[2];
  }

  // A strip of the categories that a part consists of.
  mix(data) {
    let from = 0;
    const stops = [...data.sums]
      .sort(([a], [b]) => a - b)
      .map(([category, size]) => {
        const to = from + (100 * size) / data.size,
          stop = `var(--c-${run.categories[category]}) ${from}% ${to}%`;
        from = to;
        return stop;
      });
    return `linear-gradient(90deg, ${stops.join(", ")})`;
  }

  words(part) {
    const path =
      part
        .ancestors()
        .reverse()
        .slice(1)
        .map((each) => each.data.name)
        .join(" › ") || "allocated";
    const blocks = part.data.count === 1 ? "1 block" : `${formatCount(part.data.count)} blocks`;
    return `${path}: ${formatBytes(part.value)}, ${formatShare(part.value, this.root.value)} of allocated, ${blocks}`;
  }

  tell(target) {
    const cell = target.closest?.(".cell");
    this.told(
      cell ? this.words(this.shown[cell.dataset.number].part) : null,
      cell ? this.shown[cell.dataset.number].part.data : null,
    );
  }

  clicked(event) {
    const cell = event.target.closest(".cell");
    if (cell) this.goInto(this.shown[cell.dataset.number].part);
  }

  // The part, or where that is what is shown already, the one above it.
  goInto(part) {
    const target = part === this.zoomedTo() || part.data.kind !== undefined ? (part.parent ?? part) : part;
    this.path = target
      .ancestors()
      .reverse()
      .slice(1)
      .map((each) => each.data.name);
    this.draw();
  }

  focusable(number) {
    this.current = Math.max(number, 0);
    this.box.children[this.current]?.setAttribute("tabindex", "0");
  }

  // Arrow keys go through the tree as it lies: down into a part, up out of it, sideways along a row.
  pressed(event) {
    const part = this.shown[event.target.dataset?.number ?? this.current]?.part;
    if (!part) return;
    const key = event.key;
    if (key === "Enter" || key === " ") this.goInto(part);
    else if (!this.moveTo(this.beside(part, key))) return;
    event.preventDefault();
    this.box.children[this.current]?.focus();
  }

  beside(part, key) {
    const row = this.shown.filter((each) => each.part.depth === part.depth).map((each) => each.part);
    const place = row.indexOf(part);
    return {
      ArrowDown: part.children?.[0],
      ArrowUp: part.parent,
      ArrowLeft: row[place - 1],
      ArrowRight: row[place + 1],
      Home: this.root,
      End: row.at(-1),
    }[key];
  }

  moveTo(part) {
    const number = this.shown.findIndex((each) => each.part === part);
    if (number < 0) return false;
    this.box.children[this.current]?.setAttribute("tabindex", "-1");
    this.focusable(number);
    return true;
  }
}
