// A text field whose words are saved a moment after the last key, or at once when something else is done.

const PAUSE = 400; // milliseconds after the last key

export class Typing {
  constructor(area, { step, act, typed }) {
    Object.assign(this, { area, step, act });
    this.dirty = false;
    area.addEventListener("input", () => {
      this.dirty = true;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.flush(), PAUSE);
      typed();
    });
    area.addEventListener("blur", () => this.flush());
  }

  flush() {
    clearTimeout(this.timer);
    if (!this.dirty) return;
    this.dirty = false;
    this.act(this.step(this.area.value));
  }

  // What is being typed is not replaced by what the server knew a moment ago.
  show(text) {
    if (!this.dirty && this.area.value !== text) this.area.value = text;
  }
}
