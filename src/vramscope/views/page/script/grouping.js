// The choice of how the icicle is grouped: buttons that are one group of radios.

class Grouping {
  // `changed(name)` is called when the reader chooses.
  constructor(box, changed) {
    Object.assign(this, { box, changed });
    box.addEventListener("keydown", (event) => this.pressed(event));
  }

  // Offers these; the chosen one stays where it is among them.
  offer(names) {
    this.names = names;
    this.choose(names.includes(this.chosen) ? this.chosen : names[0]);
  }

  choose(name) {
    this.chosen = name;
    this.box.replaceChildren(...this.names.map((each) => this.button(each)));
  }

  button(name) {
    const chosen = name === this.chosen;
    const button = element(
      "button",
      {
        type: "button",
        role: "radio",
        "aria-checked": String(chosen),
        tabindex: chosen ? 0 : -1,
        "data-grouping": name,
      },
      GROUPINGS[name].label,
    );
    button.addEventListener("click", () => this.pick(name));
    return button;
  }

  pick(name) {
    this.choose(name);
    this.box.querySelector("[tabindex='0']").focus();
    this.changed(name);
  }

  pressed(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { names } = this;
    this.pick(names[(names.indexOf(this.chosen) + step + names.length) % names.length]);
  }
}

// By module only where any is known.
function groupingsOf(trace) {
  return Object.keys(GROUPINGS).filter((name) => name !== "module" || trace.modules.length > 1);
}
