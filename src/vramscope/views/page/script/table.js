// Tables that sort, search and fold: real ones, with scopes, whose headers are buttons.
//
// A spec: {caption, columns: [{label, kind, none, title}], rows, search, depths, groups, bars, marked}.  `depths`
// makes it a tree in which each row is followed by those below it; `groups` is [[title, how many rows], ...];
// `bars` are the columns that a bar at the row's end is drawn of, the longer one first; `marked` is a row.

const FOLDED_ROWS = 40; // a tree opens to the depth that shows no more
const MOST_ROWS = 400; // so many are shown before the reader asks for all

function dataTable(spec) {
  return new DataTable(spec).box;
}

class DataTable {
  constructor(spec) {
    this.spec = spec;
    this.sorted = { column: null, falling: true };
    this.query = "";
    this.flat = false;
    this.all = false;
    this.rows = spec.rows.map((cells, number) => ({
      cells,
      number,
      depth: spec.depths?.[number] ?? 0,
      below: [],
      open: true,
    }));
    this.tops = spec.depths ? nested(this.rows) : this.rows;
    if (spec.depths) this.foldTo(depthFor(this.rows));
    this.body = element("tbody");
    this.heads = spec.columns.map((column, number) => this.head(column, number));
    this.most = spec.bars
      ? Math.max(1, ...spec.rows.flatMap((row) => spec.bars.map((number) => row[number] ?? 0)))
      : 0;
    const table = element(
      "table",
      { class: "data" },
      element("caption", { class: "unseen" }, spec.caption),
      element("thead", {}, element("tr", {}, ...this.heads, ...(spec.bars ? [element("td")] : []))),
      this.body,
    );
    this.note = element("p", { class: "note", role: "status" });
    this.box = element(
      "div",
      { class: "table-box" },
      ...this.tools(),
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": spec.caption }, table),
      this.note,
    );
    this.draw();
  }

  tools() {
    const { search, depths } = this.spec;
    if (!search) return [];
    const input = element("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": `Search: ${this.spec.caption}`,
    });
    input.addEventListener("input", () => this.change({ query: input.value.trim().toLowerCase() }));
    const flat = element(
      "button",
      { type: "button", "aria-pressed": "false", title: "Without the modules that only hold others" },
      "Leaves only",
    );
    flat.addEventListener("click", () => {
      this.change({ flat: !this.flat });
      flat.setAttribute("aria-pressed", String(this.flat));
    });
    const fold = (text, depth) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => (this.foldTo(depth), this.draw()));
      return button;
    };
    return [
      element(
        "div",
        { class: "tools left" },
        input,
        ...(depths ? [flat, fold("Unfold", Infinity), fold("Fold", 1)] : []),
      ),
    ];
  }

  head(column, number) {
    const button = element("button", { type: "button", title: column.title }, column.label);
    button.addEventListener("click", () => {
      const same = this.sorted.column === number,
        first = NUMBERS.has(column.kind);
      if (same && this.sorted.falling !== first) this.change({ sorted: { column: null, falling: true } });
      else this.change({ sorted: { column: number, falling: same ? !this.sorted.falling : first } });
    });
    const sortable = !this.spec.groups;
    return element(
      "th",
      { scope: "col", class: NUMBERS.has(column.kind) ? "number" : null },
      sortable ? button : element("span", { title: column.title }, column.label),
    );
  }

  change(what) {
    Object.assign(this, what);
    this.draw();
  }

  foldTo(depth) {
    for (const row of this.rows) row.open = row.depth < depth - 1;
  }

  // The rows in the order shown, and how many there would be without the limit.
  visible() {
    const found = [];
    const through = (rows) => {
      for (const row of this.ordered(rows)) {
        found.push(row);
        if (row.open) through(row.below);
      }
    };
    if (this.query || this.flat) found.push(...this.ordered(this.rows.filter((row) => this.matches(row))));
    else through(this.tops);
    return found;
  }

  matches(row) {
    if (this.flat && row.below.length) return false;
    return (
      !this.query ||
      row.cells.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(this.query))
    );
  }

  ordered(rows) {
    const { column, falling } = this.sorted;
    if (column === null) return rows;
    const sign = falling ? -1 : 1;
    return rows.toSorted((a, b) => sign * compared(a.cells[column], b.cells[column]) || a.number - b.number);
  }

  draw() {
    const rows = this.visible(),
      shown = this.all ? rows : rows.slice(0, MOST_ROWS);
    this.heads.forEach((head, number) => {
      const { column, falling } = this.sorted;
      if (column === number) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.body.replaceChildren(...this.grouped(shown));
    this.tellCount(rows.length, shown.length);
  }

  grouped(rows) {
    if (!this.spec.groups) return rows.map((row) => this.row(row));
    let from = 0;
    return this.spec.groups.flatMap(([title, count]) => {
      const part = rows.slice(from, (from += count)).map((row) => this.row(row));
      const head = element(
        "th",
        { scope: "rowgroup", colspan: this.spec.columns.length + (this.spec.bars ? 1 : 0), class: "group" },
        title,
      );
      return title ? [element("tr", {}, head), ...part] : part;
    });
  }

  tellCount(found, shown) {
    this.note.replaceChildren();
    if (this.query || this.flat)
      this.note.append(
        found ? `${formatCount(found)} of ${formatCount(this.rows.length)} rows` : "Nothing matches.",
      );
    if (shown >= found) return;
    const button = element("button", { type: "button" }, `Show all ${formatCount(found)} rows`);
    button.addEventListener("click", () => this.change({ all: true }));
    this.note.append(" ", button);
  }

  row(row) {
    const cells = this.spec.columns.map((column, number) => {
      const first = number === 0,
        value = row.cells[number];
      const cell = element(first ? "th" : "td", {
        scope: first ? "row" : null,
        class: classOf(column, value),
        "data-value": value,
      });
      if (first && this.spec.depths) this.treeCell(cell, row);
      else cell.append(...cellContent(column, value, row));
      return cell;
    });
    if (this.spec.bars)
      cells.push(
        element(
          "td",
          { class: "bars", "aria-hidden": "true" },
          ...this.spec.bars.map((number) => barOf(row.cells[number], this.most)),
        ),
      );
    const mark = this.spec.marked === row.number;
    return element("tr", { class: mark ? "marked" : null }, ...cells);
  }

  treeCell(cell, row) {
    const flat = this.query || this.flat,
      path = row.cells[0];
    const indent = element("span", { class: "indent" });
    indent.style.width = `${flat ? 0 : row.depth * 14}px`;
    const name = flat || !row.depth ? path : path.slice(path.lastIndexOf(".") + 1);
    cell.append(
      indent,
      flat || !row.below.length ? element("span", { class: "fold" }) : this.foldButton(row),
      element("span", { title: path }, name),
    );
  }

  foldButton(row) {
    const button = element(
      "button",
      {
        type: "button",
        class: "fold",
        "aria-expanded": String(row.open),
        "aria-label": `${row.open ? "Fold" : "Unfold"} ${row.cells[0]}`,
      },
      row.open ? "▾" : "▸",
    );
    button.addEventListener("click", () => {
      row.open = !row.open;
      this.draw();
      this.body.querySelectorAll(`[data-value="${CSS.escape(row.cells[0])}"] .fold`)[0]?.focus();
    });
    return button;
  }
}

// Gives each row those below it; the rows are in the order of a walk through the tree.
function nested(rows) {
  const above = [];
  for (const row of rows) {
    above.length = row.depth;
    above.at(-1)?.below.push(row);
    above.push(row);
  }
  return rows.filter((row) => row.depth === 0);
}

function depthFor(rows) {
  const deepest = Math.max(0, ...rows.map((row) => row.depth));
  for (let depth = deepest + 1; depth > 1; depth--) {
    if (rows.filter((row) => row.depth < depth).length <= FOLDED_ROWS) return depth;
  }
  return 1;
}
