// What the timeline's colours and lines stand for.

function legendOf(trace, timeline) {
  const entries = [...trace.curves.keys()].map((category) =>
    legendEntry(`c-${run.categories[category]}`, categoryWords(category)),
  );
  entries.push(legendEntry("line-reserved", "reserved"));
  if (trace.outsideAt(0) !== null) entries.push(legendEntry("line-total", "process total"));
  if (run.capacity_bytes !== null) entries.push(legendEntry("line-capacity", capacityWords(timeline)));
  return entries;
}

function legendEntry(colour, text) {
  return element("li", {}, mark(colour), text);
}

function capacityWords(timeline) {
  const above = timeline.showsCapacity() ? "" : ", above this view";
  return `card's memory ${formatBytes(run.capacity_bytes)}${above}`;
}
