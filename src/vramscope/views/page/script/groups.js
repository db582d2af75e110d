// What is live, as a tree: by module, by the program's lines, or by category.

const NO_MODULE = "outside of modules",
  NO_LINE = "no line known";

const GROUPINGS = {
  module: { label: "Module", path: (trace, kind) => [...modulePath(trace, kind), lineText(trace, kind)] },
  line: { label: "Line", path: (trace, kind) => [...callPath(trace, kind), ...ownModule(trace, kind)] },
  category: {
    label: "Category",
    path: (trace, kind) => [
      categoryWords(trace.category[kind]),
      wholeModule(trace, kind),
      lineText(trace, kind),
    ],
  },
};

function modulePath(trace, kind) {
  const path = trace.modules[trace.module[kind]];
  return path ? path.split(".") : [NO_MODULE];
}

function wholeModule(trace, kind) {
  return trace.modules[trace.module[kind]] || NO_MODULE;
}

function ownModule(trace, kind) {
  const path = trace.modules[trace.module[kind]];
  return path ? [path] : [];
}

function lineText(trace, kind) {
  return trace.lineOf(kind)[0] || NO_LINE;
}

// From the outermost call of the program's own to the line that asked; a stack without one of the program's
// own is told by its one line.
function callPath(trace, kind) {
  const own = trace.stacks[trace.stack[kind]]
    .map((number) => trace.frames[number])
    .filter(([, user]) => user);
  return own.length ? own.reverse().map(([where]) => where) : [lineText(trace, kind)];
}

// {name, size, count, sums by category, children}; the leaves are blocks that differ in nothing but their times.
function treeOf(trace, rows, grouping) {
  const root = node("allocated");
  const counts = new Map();
  for (const row of rows) counts.set(trace.kind[row], (counts.get(trace.kind[row]) ?? 0) + 1);
  for (const [kind, count] of counts) {
    let place = root;
    add(place, trace, kind, count);
    for (const name of GROUPINGS[grouping].path(trace, kind)) {
      if (!place.below.has(name)) place.below.set(name, node(name));
      place = place.below.get(name);
      add(place, trace, kind, count);
    }
    place.below.set(kind, { ...node(blockName(trace, kind)), size: trace.size[kind] * count, count, kind });
  }
  return root;
}

function node(name) {
  return { name, size: 0, count: 0, sums: new Map(), below: new Map() };
}

function add(place, trace, kind, count) {
  const size = trace.size[kind] * count,
    category = trace.category[kind];
  place.size += size;
  place.count += count;
  place.sums.set(category, (place.sums.get(category) ?? 0) + size);
}

function blockName(trace, kind) {
  return trace.names[trace.name[kind]] || categoryWords(trace.category[kind]);
}
