// The colours of page.css, resolved for a canvas, which knows no custom properties and no light-dark().

const THEMES = { system: "light dark", light: "light", dark: "dark" };

function colourOf(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

// Resolved colours by name, asked for once per theme.
class Palette {
  constructor() {
    this.known = new Map();
  }
  of(name) {
    if (!this.known.has(name)) this.known.set(name, colourOf(name));
    return this.known.get(name);
  }
  forget() {
    this.known.clear();
  }
}

// Light, dark or as the system has it; `changed` is called whenever the colours are others than before.
function followTheme(button, changed) {
  const names = Object.keys(THEMES);
  let chosen = stored("vramscope.theme");
  const apply = () => {
    if (!names.includes(chosen)) chosen = "system";
    document.documentElement.dataset.theme = chosen;
    document.documentElement.style.colorScheme = THEMES[chosen];
    button.textContent = `Theme: ${chosen}`;
    changed();
  };
  button.addEventListener("click", () => {
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    store("vramscope.theme", chosen);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply();
}

// A page opened from a file may have no storage.
function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // the choice holds for this page only
  }
}
