// The moments that a plot of some width shows.

// Of each pixel's moments the lowest, the highest and the one with most reserved, so that no peak is lost
// and the categories under a point are those of one moment.
function sampled(trace, from, to, pixels) {
  const count = to - from + 1;
  if (count <= 2 * pixels) return Array.from({ length: Math.max(count, 0) }, (_, each) => from + each);
  const chosen = [];
  for (let pixel = 0; pixel < pixels; pixel++) {
    const first = from + Math.floor((pixel * count) / pixels);
    const last = from + Math.floor(((pixel + 1) * count) / pixels) - 1;
    const moments = new Set([lowest(trace.allocated, first, last), highest(trace.allocated, first, last)]);
    moments.add(highest(trace.reserved, first, last));
    chosen.push(...[...moments].sort((a, b) => a - b));
  }
  return chosen;
}

function highest(values, first, last) {
  let found = first;
  for (let place = first + 1; place <= last; place++) if (values[place] > values[found]) found = place;
  return found;
}

function lowest(values, first, last) {
  let found = first;
  for (let place = first + 1; place <= last; place++) if (values[place] < values[found]) found = place;
  return found;
}

// What uPlot draws: moments, then the categories' sums from the topmost down to the lowest alone (each is
// painted over the one before), reserved and, where it is known, the process total.
function plotted(trace, moments) {
  const stack = [],
    sum = new Float64Array(moments.length);
  for (const curve of trace.curves.values()) {
    for (let place = 0; place < moments.length; place++) sum[place] += curve[moments[place]];
    stack.push(Float64Array.from(sum));
  }
  const reserved = moments.map((moment) => trace.reserved[moment]);
  const total = moments.map((moment) => totalAt(trace, moment));
  return [moments, ...stack.reverse(), reserved, total];
}

function totalAt(trace, moment) {
  const outside = trace.outsideAt(moment);
  return outside === null ? null : trace.reserved[moment] + outside;
}
