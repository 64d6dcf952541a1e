// What stands around note and answer: the question, the grade of harm, remarks, and what other readings say.

import { button, byId, element } from "./dom.js";

const bracketed = (line) => element("p", `${line.text} [${line.links.join(", ") || "no support"}]`);

export function showQuestions(view, take) {
  const others = Object.entries(view.readings).map(([name, said]) => [name, said.question]);
  if (view.program?.question) others.unshift(["The program asked", view.program.question]);
  if (view.data_question) others.push(["The data asks", view.data_question]);
  byId("other-questions").replaceChildren(
    ...others.map(([name, text]) => {
      const item = element("li", "", { "data-text": text });
      item.append(element("span", `${name}: ${text}`), button("Take", () => take(text), { "aria-label": `Take this question: ${name}` }));
      return item;
    }),
  );
}

export function showAnswers(view, take) {
  const blocks = Object.entries(view.readings).map(([name, said]) => {
    const block = element("div", "", { class: "reading" });
    const title = element("h3", name);
    title.append(button("Take", () => take(said), { "aria-label": `Take the answer of ${name}` }));
    block.append(title, ...(said.not_answered ? [element("p", "The note does not answer this question.")] : said.answer.map(bracketed)));
    if (said.remark) block.append(element("p", `Remark: ${said.remark}`));
    if (said.harm) block.append(element("p", `Harm: ${said.harm}`));
    return block;
  });
  byId("other-answers").replaceChildren(...blocks);
}

export function showProgram(program) {
  byId("harm-part").hidden = !program;
  const said = program?.said;
  const lines = said?.not_answered ? [element("p", "The note does not answer this question.")] : (said?.answer ?? []).map(bracketed);
  byId("program-lines").replaceChildren(...lines);
  const reasons = [...(program?.reasons ?? [])];
  const notices = (program?.notices ?? []).map((n) => `${n.stage}: ${n.kind.replaceAll("_", " ")}${n.detail ? ` (${n.detail})` : ""}`);
  byId("why").textContent = [reasons.length ? `Look for: ${reasons.join(", ")}.` : "", notices.length ? `Notices: ${notices.join("; ")}.` : ""].join(" ");
  byId("why").hidden = !reasons.length;
}

export function showVerdict(state) {
  for (const item of byId("other-questions").children) item.lastElementChild.hidden = item.dataset.text === state.question;
  for (const input of document.querySelectorAll("#harm input")) input.checked = input.value === state.harm;
  byId("not-answered").checked = state.not_answered;
  byId("faults").replaceChildren(...state.faults.map((text) => element("li", text)));
  byId("doubts").replaceChildren(...state.doubts.map((text) => element("li", text)));
  byId("finished").hidden = byId("reopen").hidden = !state.finished;
  byId("undo").disabled = !state.can_undo;
  byId("redo").disabled = !state.can_redo;
}
