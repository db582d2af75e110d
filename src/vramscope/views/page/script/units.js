// Bytes as text, as src/vramscope/units.py has them: same units, same figures, same rounding.

const KIB = 1024,
  MIB = KIB * 1024,
  GIB = MIB * 1024,
  TIB = GIB * 1024;
const UNITS = [
  ["TiB", TIB],
  ["GiB", GIB],
  ["MiB", MIB],
  ["KiB", KIB],
];

// Ties go to the even neighbour, as in Python; toFixed takes them upwards.  Only binary fractions of up to
// three digits can lie on one (1.125 MiB is 1152 KiB), and those are exact here.
function fixed(value, digits) {
  const scale = 10 ** digits,
    scaled = value * scale,
    whole = Math.floor(scaled);
  const tie = (value * 8) % 1 === 0 && scaled - whole === 0.5;
  return (tie ? (whole % 2 === 0 ? whole : whole + 1) / scale : value).toFixed(digits);
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

function threeFigures(value) {
  const magnitude = Math.abs(value);
  if (magnitude < 10) return fixed(value, 2);
  return magnitude < 100 ? fixed(value, 1) : grouped(fixed(value, 0));
}

function formatBytes(size) {
  const found = UNITS.find(([, factor]) => Math.abs(size) >= factor);
  return found ? `${threeFigures(size / found[1])} ${found[0]}` : `${size} B`;
}

function formatCount(number) {
  return grouped(String(number));
}

function formatShare(part, whole) {
  if (!whole) return "";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(1)} %`;
}

// A difference, always with its sign.
function formatChange(size) {
  return `${size < 0 ? "−" : "+"}${formatBytes(Math.abs(size))}`;
}

function formatTime(microseconds) {
  if (microseconds < 1000) return `${microseconds} µs`;
  const seconds = microseconds / 1e6;
  return seconds < 1 ? `${threeFigures(microseconds / 1000)} ms` : `${threeFigures(seconds)} s`;
}
