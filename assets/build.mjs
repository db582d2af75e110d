// Writes the libraries that the page of a run carries, and their licences, into the Python package.
//
// Run by `make assets` after `npm ci`; the same lock file gives the same bytes.  versions.json says what
// was written: a test holds it against the lock file and the files' digests, without a network.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const vendor = join(here, "..", "src", "vramscope", "views", "page", "vendor");

const copied = (path) => readFileSync(join(modules, path), "utf8");

function bundled(entry, name) {
  const built = buildSync({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "iife",
    globalName: name,
    target: "es2020",
    legalComments: "none", // the whole licence goes into the page, in front of the code
    write: false,
  });
  return built.outputFiles[0].text;
}

const files = {
  "uplot.js": copied("uplot/dist/uPlot.iife.min.js"),
  "uplot.css": copied("uplot/dist/uPlot.min.css"),
  "uplot.LICENSE": copied("uplot/LICENSE"),
  "d3-hierarchy.js": bundled("d3-hierarchy.entry.js", "d3"),
  "d3-hierarchy.LICENSE": copied("d3-hierarchy/LICENSE"),
};

const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8"));
const version = (name) => lock.packages[`node_modules/${name}`].version;
const digest = (text) => createHash("sha256").update(text).digest("hex");
const versions = {
  packages: Object.fromEntries(["d3-hierarchy", "uplot"].map((name) => [name, version(name)])),
  sha256: Object.fromEntries(
    Object.keys(files)
      .sort()
      .map((name) => [name, digest(files[name])]),
  ),
};

mkdirSync(vendor, { recursive: true });
for (const [name, text] of Object.entries(files)) writeFileSync(join(vendor, name), text);
writeFileSync(join(vendor, "versions.json"), `${JSON.stringify(versions, null, 2)}\n`);
console.log(
  Object.entries(files)
    .map(([name, text]) => `${name} ${text.length} bytes`)
    .join("\n"),
);
