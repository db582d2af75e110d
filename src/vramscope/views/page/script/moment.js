// One moment: in words, as a ledger whose rows sum up, as an icicle, and its largest blocks.

const LARGEST = 25;

function categoryWords(number) {
  return run.categories[number].replaceAll("_", " ");
}

function placeWords(trace, moment) {
  const span = trace.spans[trace.spanAt(moment)];
  if (!span) return "";
  const phase = span.phase.replaceAll("_", " ");
  return span.step === null ? phase : `${phase}, step ${span.step}`;
}

function momentWords(trace, moment) {
  if (trace.still) return "the state that the snapshot was taken in";
  const parts = [`moment ${formatCount(moment)} of ${formatCount(trace.moments)}`, placeWords(trace, moment)];
  if (moment === trace.peak) parts.push("the peak");
  return parts.filter(Boolean).join(" · ");
}

function figureWords(trace, moment) {
  const total = totalAt(trace, moment);
  const parts = [
    `allocated ${formatBytes(trace.allocated[moment])}`,
    `reserved ${formatBytes(trace.reserved[moment])}`,
  ];
  if (total !== null) parts.push(`process total ${formatBytes(total)}`);
  return parts.join(" · ");
}

// The event that the moment began with: a block given out, one given back, or neither (a segment).
function eventWords(trace, moment) {
  const born = trace.born.indexOf(moment);
  if (born >= 0) return `allocates ${blockWords(trace, trace.kind[born])}`;
  const freed = trace.born.findIndex((each, row) => each + trace.lived[row] === moment);
  return freed >= 0 ? `frees ${blockWords(trace, trace.kind[freed])}` : "";
}

function blockWords(trace, kind) {
  const owner = trace.names[trace.name[kind]] || trace.modules[trace.module[kind]],
    where = trace.lineOf(kind)[0];
  return `${formatBytes(trace.size[kind])} ${categoryWords(trace.category[kind])}${owner ? ` of ${owner}` : ""}${where ? ` at ${where}` : ""}`;
}

// Categories sum to allocated; with what is free in segments that is reserved; with outside the process total.
function ledger(trace, moment) {
  const allocated = trace.allocated[moment],
    reserved = trace.reserved[moment],
    outside = trace.outsideAt(moment);
  const rows = [...trace.categoriesAt(moment)].map(([category, size]) => {
    const name = run.categories[category];
    return ledgerRow([mark(`c-${name}`), categoryWords(category)], size, allocated, {
      class: size ? null : "none",
    });
  });
  rows.push(ledgerRow(["allocated"], allocated, reserved, { class: "sum" }));
  rows.push(ledgerRow(["free in segments"], reserved - allocated, reserved, {}));
  rows.push(ledgerRow([mark("line-reserved"), "reserved"], reserved, null, { class: "sum" }));
  if (outside !== null) {
    rows.push(ledgerRow(["outside"], outside, null, {}));
    rows.push(ledgerRow([mark("line-total"), "process total"], reserved + outside, null, { class: "sum" }));
  }
  return element(
    "table",
    { class: "ledger" },
    element("caption", { class: "unseen" }, "Bytes at the chosen moment"),
    element("tbody", {}, ...rows),
  );
}

function ledgerRow(label, size, whole, attributes) {
  return element(
    "tr",
    attributes,
    element("th", { scope: "row" }, ...label),
    element("td", { class: "number", "data-bytes": size }, size ? formatBytes(size) : "0"),
    element("td", { class: "number share" }, whole === null ? "" : formatShare(size, whole)),
  );
}

function largestTable(trace, rows) {
  const chosen = rows
    .toSorted((a, b) => trace.size[trace.kind[b]] - trace.size[trace.kind[a]])
    .slice(0, LARGEST);
  return dataTable({
    caption: `The ${chosen.length} largest of ${formatCount(rows.length)} live blocks`,
    columns: [
      { label: "Size", kind: "bytes" },
      { label: "Category", kind: "category" },
      { label: "Tensor", kind: "path" },
      { label: "Module", kind: "path" },
      { label: "Line", kind: "path" },
      { label: "Allocated at", kind: "moment" },
      { label: "Freed at", kind: "moment" },
    ],
    rows: chosen.map((row) => {
      const kind = trace.kind[row];
      return [
        trace.size[kind],
        trace.category[kind],
        trace.names[trace.name[kind]],
        trace.modules[trace.module[kind]],
        trace.lineOf(kind)[0],
        trace.born[row] < 0 ? null : trace.born[row],
        trace.freed(row),
      ];
    }),
  });
}
