// Where the page begins.

const run = JSON.parse(byId("run").textContent);
const palette = new Palette();
let page = null;

async function start() {
  followTheme(byId("theme"), () => {
    palette.forget();
    page?.timeline.redraw();
  });
  if (!byId("trace-0")) return;
  page = face.page = new Page();
  run.traces.forEach((label, number) => byId("trace").append(element("option", { value: number }, label)));
  byId("trace-field").hidden = run.traces.length < 2;
  await page.open(0);
}

// For the console, and for tests: `ready` is fulfilled once what there is to show is shown.  It begins a frame
// late, so that the text above is painted before the history is unpacked.
const face = (globalThis.vramscope = { formatBytes, formatChange, page: null });
face.ready = new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(start()))));
