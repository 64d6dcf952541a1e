// The note: a row a sentence with its mark, and whether it supports the chosen answer sentence.

import { byId, fromTemplate } from "./dom.js";

const LETTER = { essential: "E", supplementary: "S", "not-relevant": "N" };

export class Note {
  constructor({ act, chosen }) {
    Object.assign(this, { act, chosen });
    this.list = byId("sentences");
    this.rows = new Map();
    this.here = null;
    this.list.addEventListener("change", (event) => this.#changed(event.target));
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.list.addEventListener("focusin", (event) => this.#stand(event.target.closest("li")?.dataset.id));
  }

  build(view) {
    this.readings = Object.entries(view.readings);
    this.rows = new Map(view.sentences.map((sentence, i) => [sentence.id, this.#row(sentence, view.sentences[i - 1])]));
    this.list.replaceChildren(...this.rows.values());
    this.here = view.sentences[0]?.id ?? null;
    this.#stand(this.here);
    this.showProgram(view.program);
  }

  showProgram(program) {
    for (const [id, row] of this.rows) {
      const score = program?.scores[id];
      row.querySelector(".score").textContent = score === undefined ? "" : `score ${score}`;
    }
  }

  show(state) {
    const chosen = state.answer.find((line) => line.id === this.chosen());
    const citing = new Map();
    for (const line of state.not_answered ? [] : state.answer)
      for (const id of line.links) citing.set(id, [...(citing.get(id) ?? []), line.id]);
    for (const [id, row] of this.rows) this.#showRow(row, id, state.marks[id] ?? "", chosen, citing.get(id) ?? []);
    this.list.classList.toggle("linkable", Boolean(chosen));
    this.#tally(Object.values(state.marks));
  }

  move(by) {
    const ids = [...this.rows.keys()];
    this.focus(ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(this.here) + by))]);
  }

  focus(id = this.here) {
    const row = this.rows.get(id);
    if (!row) return;
    (row.querySelector(".marks :checked") ?? row.querySelector(".marks input")).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  mark(value) {
    if (this.here !== null) this.act({ do: "mark", sentence: this.here, value });
  }

  toggleLink(id = this.here) {
    const answer = this.chosen();
    if (answer === null || id === null) return;
    this.act({ do: "link", answer, sentence: id, value: !this.rows.get(id).querySelector(".cite input").checked });
  }

  #row(sentence, before) {
    const row = fromTemplate("sentence-row");
    row.dataset.id = sentence.id;
    row.classList.toggle("opens", Boolean(before) && before.paragraph !== sentence.paragraph);
    row.querySelector("legend").textContent = `Sentence ${sentence.id}: ${sentence.text}`;
    row.querySelector(".id").textContent = sentence.id;
    row.querySelector(".text").textContent = sentence.text;
    for (const input of row.querySelectorAll(".marks input")) input.name = `mark ${sentence.id}`;
    const marks = this.readings.map(([name, said]) => [name, said.marks[sentence.id]]);
    if (marks.some(([, mark]) => mark !== marks[0][1])) {
      row.classList.add("differ");
      row.querySelector(".readings").textContent = marks.map(([name, mark]) => `${name}: ${mark ?? "no mark"}`).join(", ");
    }
    return row;
  }

  #showRow(row, id, mark, chosen, citing) {
    row.dataset.mark = mark;
    for (const input of row.querySelectorAll(".marks input")) {
      input.checked = input.value === mark;
      // The focus goes with the mark, however that was set.
      if (input.checked && input.closest(".marks").contains(document.activeElement)) input.focus({ preventScroll: true });
    }
    const cite = row.querySelector(".cite");
    cite.hidden = !chosen;
    cite.firstElementChild.checked = Boolean(chosen?.links.includes(id));
    cite.lastElementChild.textContent = chosen ? `Sentence ${id} supports answer sentence ${chosen.id}` : "";
    row.classList.toggle("cited", Boolean(chosen?.links.includes(id)));
    row.querySelector(".cited-by").textContent = citing.length ? `supports ${citing.join(", ")}` : "";
  }

  #tally(marks) {
    const count = (wanted) => marks.filter((mark) => mark === wanted).length;
    const open = count(null);
    const told = Object.entries(LETTER).map(([mark, letter]) => `${count(mark)} ${letter}`);
    byId("tally").textContent = marks.length ? told.join(" · ") + (open ? ` · ${open} not marked` : "") : "has no sentences in the data";
    byId("mark-rest").hidden = !open;
  }

  #changed(input) {
    const id = input.closest("li").dataset.id;
    if (input.type === "radio") this.act({ do: "mark", sentence: id, value: input.value });
    else this.act({ do: "link", answer: this.chosen(), sentence: id, value: input.checked });
  }

  #clicked(event) {
    const row = event.target.closest("li");
    if (!row) return;
    this.#stand(row.dataset.id);
    if (event.target.classList.contains("text") && getSelection().isCollapsed) this.toggleLink(row.dataset.id);
  }

  #stand(id) {
    if (id === undefined) return;
    this.rows.get(this.here)?.classList.remove("here");
    this.here = id;
    this.rows.get(id)?.classList.add("here");
  }
}
