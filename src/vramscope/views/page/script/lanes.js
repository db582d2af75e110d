// The bands above the plot: steps, phases and, where the program made any, marks.

const LANE = 18,
  LANE_GAP = 2;

function lanesOf(trace) {
  const band = ([text, , from, to]) => ({ text, from, to });
  const lanes = [
    { name: "step", bands: trace.steps.map(band) },
    { name: "phase", bands: trace.phases.map(band) },
    { name: "mark", bands: markBands(trace.marks) },
  ];
  return lanes.filter((lane) => lane.bands.length);
}

// A mark names what lies between the mark before it and itself.
function markBands(marks) {
  let from = 0;
  return marks.map(([text, moment]) => {
    const band = { text, from, to: moment + 1 };
    from = moment + 1;
    return band;
  });
}

// Draws the lanes over a plot's upper edge, and a fine line down through it where a step begins.
function drawLanes(plot, lanes, palette) {
  const { ctx, bbox } = plot,
    ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  lanes.forEach((lane, number) => {
    const top = bbox.top - (lanes.length - number) * (LANE + LANE_GAP) * ratio;
    lane.bands.forEach((band, place) => drawBand(plot, band, top, place, lane.name, palette));
  });
  ctx.restore();
}

function drawBand(plot, band, top, place, lane, palette) {
  const { ctx, bbox } = plot,
    ratio = devicePixelRatio,
    right = bbox.left + bbox.width;
  const from = Math.max(plot.valToPos(band.from, "x", true), bbox.left);
  const to = Math.min(plot.valToPos(band.to, "x", true), right);
  if (!band.text || to - from < 0.5 * ratio) return;
  const tone = lane === "phase" ? `band-${band.text.replaceAll(" ", "-")}` : `band-${place % 2}`;
  ctx.fillStyle = palette.of(tone);
  ctx.fillRect(from, top, Math.max(to - from - ratio, 0.5 * ratio), LANE * ratio);
  if (lane === "step" && from > bbox.left) {
    ctx.fillStyle = palette.of("line");
    ctx.fillRect(from - ratio, top, ratio, bbox.top + bbox.height - top);
  }
  drawFitting(
    ctx,
    band.text,
    from + 5 * ratio,
    top + (LANE / 2) * ratio,
    to - from - 8 * ratio,
    palette.of("band-text"),
  );
}

// The text, cut to the room; nothing where not even four letters fit.
function drawFitting(ctx, text, x, y, room, colour) {
  const width = ctx.measureText(text).width;
  const letters = width <= room ? text.length : Math.floor((text.length * room) / width) - 1;
  if (letters < Math.min(4, text.length)) return;
  ctx.fillStyle = colour;
  ctx.fillText(letters < text.length ? `${text.slice(0, letters)}…` : text, x, y);
}
