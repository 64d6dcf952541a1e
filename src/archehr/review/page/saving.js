// What is on its way to the journal: actions are sent in order, and called saved when the server has them on disk.

const RETRY = 2000; // milliseconds until a server that did not answer is asked again
const QUICK = 150; // a save faster than this changes its colour, not its words: a screen reader would speak of nothing else
const IDLE = 60_000; // milliseconds without a key or a click that still count as work

export class Saving {
  // `shown` gets the new state; `refused` why an action was not taken, the state, if it is known, and what was lost;
  // `told` whether all is "saved", "saving" or "unsaved", and why.
  constructor({ shown, refused, told }) {
    Object.assign(this, { shown, refused, told });
    this.unsent = [];
    this.inFlight = null;
    this.case = null;
    this.version = 0;
    this.worked = 0;
    this.lastInput = performance.now();
    for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, () => this.#work(), { passive: true });
    document.addEventListener("visibilitychange", () => this.#work());
  }

  get pending() {
    return this.unsent.length > 0 || this.inFlight !== null;
  }

  // From now on actions are about this case. The one before must have been drained.
  open(id, version) {
    Object.assign(this, { case: id, version, worked: 0, lastInput: performance.now() });
  }

  do(step) {
    this.unsent.push(step);
    this.#send();
  }

  // Resolves once everything is on disk, or was refused.
  async drained() {
    while (this.pending) await (this.inFlight ?? new Promise((wake) => setTimeout(wake, 50)));
  }

  // The page is going: send what is left without waiting for what is under way.
  leave() {
    const steps = this.unsent.splice(0);
    this.#work();
    if (this.worked > 3000) steps.push({ do: "pause" });
    if (steps.length) this.#post(steps, this.version + (this.inFlight ? this.sending.length : 0)).catch(() => {});
  }

  #work() {
    const now = performance.now();
    this.worked += Math.min(now - this.lastInput, IDLE);
    this.lastInput = now;
  }

  #post(steps, version) {
    const seconds = this.worked / 1000;
    this.worked = 0;
    const body = JSON.stringify({ case: this.case, version, steps, seconds });
    // keepalive: the request outlives the page.
    return fetch("act", { method: "POST", headers: { "content-type": "application/json" }, body, keepalive: body.length < 60_000 });
  }

  #send() {
    if (this.inFlight || !this.unsent.length) return;
    this.sending = this.unsent.splice(0);
    this.#work();
    this.told("saving", "", true);
    const slow = setTimeout(() => this.told("saving"), QUICK);
    this.inFlight = this.#post(this.sending, this.version)
      .then((response) => this.#answered(response), () => this.#unanswered())
      .finally(() => {
        clearTimeout(slow);
        this.inFlight = null;
        if (!this.retrying) this.#send();
      });
  }

  async #answered(response) {
    const body = await response.json().catch(() => ({ error: `the server said ${response.status}` }));
    if (response.ok) {
      this.version = body.state.version;
      this.told("saved");
      this.shown(body.state);
      return;
    }
    if (response.status === 507) return this.#unanswered(body.error);
    const lost = [...this.sending, ...this.unsent.splice(0)];
    if (body.state) this.version = body.state.version; // what came before the refused action is saved
    await this.refused(body.error, body.state ?? null, lost);
  }

  #unanswered(why = "archehr review does not answer. If it was stopped, start it again and copy there what is not saved here") {
    this.unsent.unshift(...this.sending);
    this.told("unsaved", why);
    this.retrying = setTimeout(() => {
      this.retrying = null;
      this.#send();
    }, RETRY);
  }
}
