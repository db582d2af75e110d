// The cells of a table, by the kind of their column.

const NUMBERS = new Set(["bytes", "change", "count", "moment", "time"]);

// What is not known comes last in a falling order.
function compared(a, b) {
  if (a === null || b === null) return (a === null ? 0 : 1) - (b === null ? 0 : 1);
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

function classOf(column, value) {
  return (
    [NUMBERS.has(column.kind) && "number", column.kind === "path" && "path", value === 0 && "zero"]
      .filter(Boolean)
      .join(" ") || null
  );
}

function cellContent(column, value, row) {
  if (value === null || value === "") return [column.none ?? ""];
  switch (column.kind) {
    case "bytes":
      return [value ? formatBytes(value) : "0"];
    case "change":
      return [value ? formatChange(value) : "0"];
    case "count":
      return [formatCount(value)];
    case "time":
      return [formatTime(value)];
    case "category":
      return [mark(`c-${run.categories[value]}`), categoryWords(value)];
    case "moment":
      return [jumpButton(formatCount(value), () => page.choose(value))];
    case "stage":
      return [jumpButton(value, () => page.look(...row.cells.slice(-2)))];
    default:
      return [value];
  }
}

function jumpButton(text, action) {
  const button = element("button", { type: "button", class: "jump" }, text);
  button.addEventListener("click", action);
  return button;
}

function barOf(value, most) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = most ? `${Math.max(0, (100 * (value ?? 0)) / most)}%` : "0";
  return bar;
}
