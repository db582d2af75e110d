// Elements with text: nothing of a run ever becomes markup.

const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// A small patch of a colour, or a piece of a line, in front of what it stands for.
function mark(colour) {
  return element("span", { class: `swatch ${colour}`, "aria-hidden": "true" });
}

// Calls at most once per frame, with the last arguments.
function oncePerFrame(work) {
  let waiting = false,
    last = [];
  return (...given) => {
    last = given;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work(...last);
    });
  };
}
