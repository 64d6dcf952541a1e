// The answer: its sentences as text fields, with their links, and the one that is chosen for linking.

import { button, byId, codePoints, fit, fromTemplate, words } from "./dom.js";
import { Typing } from "./typing.js";

export class Answer {
  constructor({ act, flush, chose, typed, toSentence }) {
    Object.assign(this, { act, flush, chose, typed, toSentence });
    this.list = byId("lines");
    this.rows = new Map();
    this.chosen = null;
    this.wanted = null; // where to put the cursor once the sentences have changed
    byId("add").addEventListener("click", () => this.add());
    this.list.addEventListener("focusin", (event) => this.choose(event.target.closest("li").dataset.id));
  }

  get typing() {
    return [...this.rows.values()].map((row) => row.typing);
  }

  get words() {
    return [...this.rows.values()].reduce((sum, row) => sum + words(row.area.value), 0);
  }

  build() {
    this.rows.clear();
    this.chosen = this.wanted = null;
    this.list.replaceChildren();
  }

  show(state) {
    if (state.answer.map((line) => line.id).join(" ") !== [...this.rows.keys()].join(" ")) this.#rebuild(state.answer);
    for (const [i, line] of state.answer.entries()) this.#showRow(this.rows.get(line.id), line, i + 1 === state.answer.length);
    byId("answer").classList.toggle("off", state.not_answered);
    if (this.wanted) this.#putCursor();
  }

  choose(id) {
    if (id === this.chosen) return;
    this.chosen = id;
    for (const [other, row] of this.rows) {
      row.item.classList.toggle("chosen", other === id);
      row.radio.checked = other === id;
    }
    this.chose();
  }

  move(by) {
    const ids = [...this.rows.keys()];
    if (!ids.length) return;
    const place = ids.indexOf(this.chosen);
    this.choose(ids[place < 0 ? 0 : Math.max(0, Math.min(ids.length - 1, place + by))]);
    this.rows.get(this.chosen).item.scrollIntoView({ block: "nearest" });
  }

  edit(id = this.chosen ?? [...this.rows.keys()][0]) {
    this.rows.get(id)?.area.focus();
  }

  add() {
    const place = this.chosen === null ? this.rows.size : [...this.rows.keys()].indexOf(this.chosen) + 1;
    this.#restructure({ do: "add", after: this.chosen }, place, 0);
  }

  #restructure(step, place, at) {
    this.flush();
    this.wanted = { place, at };
    this.act(step);
  }

  // At the end of a sentence there is nothing to split off: a new one begins.
  #split(row) {
    const { value, selectionStart } = row.area;
    const before = value.slice(0, selectionStart);
    if (!value.slice(selectionStart).trim()) return this.#restructure({ do: "add", after: row.id }, this.#place(row) + 1, 0);
    this.#restructure({ do: "split", answer: row.id, at: codePoints(before) }, this.#place(row) + 1, 0);
  }

  #join(row) {
    this.#restructure({ do: "join", answer: row.id }, this.#place(row), row.area.value.trim().length);
  }

  #place(row) {
    return [...this.rows.keys()].indexOf(row.id);
  }

  #rebuild(lines) {
    const focused = this.list.contains(document.activeElement);
    const place = [...this.rows.keys()].indexOf(this.chosen);
    this.rows = new Map(lines.map((line) => [line.id, this.#row(line)]));
    this.list.replaceChildren(...[...this.rows.values()].map((row) => row.item));
    if (focused && !this.wanted) this.wanted = { place: Math.max(0, Math.min(place, lines.length - 1)), at: 0 };
    this.chosen = null;
    this.chose();
  }

  #row(line) {
    const item = fromTemplate("answer-row");
    const find = (css) => item.querySelector(css);
    const row = { id: line.id, item, area: find("textarea"), radio: find("input"), cites: find(".cites"), join: find(".join") };
    item.dataset.id = line.id;
    find(".id").textContent = line.id;
    row.radio.setAttribute("aria-label", `Choose answer sentence ${line.id} for linking`);
    row.area.setAttribute("aria-label", `Answer sentence ${line.id}`);
    row.typing = new Typing(row.area, {
      step: (text) => ({ do: "edit", answer: line.id, text: text.replace(/\s*\n\s*/gu, " ") }),
      act: this.act,
      typed: () => (fit(row.area), this.typed()),
    });
    row.area.addEventListener("keydown", (event) => this.#key(event, row));
    find(".split").addEventListener("click", () => this.#split(row));
    row.join.addEventListener("click", () => this.#join(row));
    find(".remove").addEventListener("click", () => this.#restructure({ do: "remove", answer: line.id }, this.#place(row), 0));
    for (const name of ["split", "join", "remove"]) {
      const tool = find(`.${name}`);
      tool.setAttribute("aria-label", `${tool.textContent} answer sentence ${line.id}`);
    }
    return row;
  }

  #showRow(row, line, last) {
    row.typing.show(line.text);
    fit(row.area);
    row.join.disabled = last;
    const cites = line.links.map((id) => button(`[${id}]`, () => this.toSentence(id), { "aria-label": `Go to note sentence ${id}` }));
    if (cites.length) row.cites.replaceChildren(...cites);
    else row.cites.textContent = "no support yet";
  }

  #key(event, row) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const { selectionStart: start, selectionEnd: end } = row.area;
    const before = [...this.rows.values()][this.#place(row) - 1];
    if (event.key === "Enter") {
      event.preventDefault();
      this.#split(row);
    } else if (event.key === "Backspace" && start === 0 && end === 0 && before) {
      event.preventDefault();
      this.#join(before);
    }
  }

  #putCursor() {
    const row = [...this.rows.values()][Math.min(this.wanted.place, this.rows.size - 1)];
    const { at } = this.wanted;
    this.wanted = null;
    if (!row) return byId("add").focus();
    row.area.focus();
    row.area.setSelectionRange(at, at);
  }
}
