// The review page: shows the case that the server holds, and sends it every action. The server's state is the truth.

import { Answer } from "./answer.js";
import { byId, element, fit, showCount, words } from "./dom.js";
import { listen } from "./keys.js";
import { Note } from "./note.js";
import { Saving } from "./saving.js";
import { Typing } from "./typing.js";
import { showAnswers, showProgram, showQuestions, showVerdict } from "./verdict.js";

let overview;
let view;
let state;

const get = async (path) => {
  const response = await fetch(path);
  if (!response.ok) throw new Error((await response.json()).error);
  return response.json();
};

// ------------------------------------------------------------------------------------------------- saving

const saving = new Saving({ shown: show, refused, told: tellSaved });
const act = (step) => saving.do(step);

function tellSaved(kind, why = "", quietly = false) {
  const shown = byId("saved");
  const text = { saved: "Saved", saving: "Saving…", unsaved: "Not saved" }[kind];
  if (shown.dataset.kind === "unsaved" && quietly) return;
  shown.dataset.kind = kind;
  if (!quietly && shown.textContent !== text) shown.textContent = text;
  if (kind === "unsaved") tell(`Not saved: ${why}`);
  else if (kind === "saved" && byId("told").dataset.kind === "unsaved") byId("told").hidden = true;
  if (kind !== "saving") byId("told").dataset.kind = kind;
}

function tell(text, again = null) {
  byId("told").hidden = false;
  byId("told-words").textContent = text;
  byId("told-again").hidden = !again;
  byId("told-again").onclick = () => {
    byId("told").hidden = true;
    again();
  };
}

// An action did not fit; without a state another window was faster: show how things stand, and offer it again.
async function refused(why, now, lost) {
  if (now) {
    show(now);
    return tell(why);
  }
  await load(view.id);
  const made = lost.filter((step) => step.do !== "pause");
  const typed = made.map((step) => step.text).filter(Boolean).join(" ");
  tell(`${why} You see it as it is now; your last change was not made${typed ? `: “${typed}”` : "."}`, () => made.forEach(act));
}

function flush() {
  for (const typing of [question, remark, ...answer.typing]) typing.flush();
}

// ------------------------------------------------------------------------------------------------- parts

const note = new Note({ act: actAfterTyping, chosen: () => answer.chosen });
const answer = new Answer({
  act,
  flush,
  chose: () => state && (note.show(state), showLinking()),
  typed,
  toSentence: (id) => note.focus(id),
});
const question = new Typing(byId("question"), { step: (text) => ({ do: "question", text }), act, typed });
const remark = new Typing(byId("remark"), { step: (text) => ({ do: "remark", text }), act, typed });

function actAfterTyping(step) {
  flush();
  act(step);
}

function typed() {
  tellSaved("saving");
  counts();
}

function counts() {
  for (const id of ["question", "remark"]) fit(byId(id));
  showCount(byId("question-count"), words(byId("question").value), overview.limits.question);
  showCount(byId("answer-count"), state.not_answered ? 0 : answer.words, overview.limits.answer);
}

function show(next) {
  const revealed = state?.hidden && !next.hidden;
  state = next;
  question.show(state.question);
  remark.show(state.remark);
  answer.show(state);
  note.show(state);
  showVerdict(state);
  counts();
  tellSaved(saving.unsent.length || typingNow() ? "saving" : "saved");
  byId("blind").hidden = !state.hidden;
  showLinking();
  showStatus(view.id, state.status);
  if (revealed) load(view.id); // with what was hidden
}

const typingNow = () => [question, remark, ...answer.typing].some((typing) => typing.dirty);

function showLinking() {
  const line = state.answer.find((l) => l.id === answer.chosen);
  byId("linking").hidden = !line;
  byId("linking-words").textContent = line ? `Linking ${line.id}: ${line.text}` : "";
}

// ------------------------------------------------------------------------------------------------- cases

const MARK = { new: "", begun: " · begun", finished: " · finished" };

function showStatus(id, status) {
  const place = overview.cases.findIndex((c) => c.id === id);
  overview.cases[place].status = status;
  byId("cases").options[place].textContent = id + MARK[status];
  const finished = overview.cases.filter((c) => c.status === "finished").length;
  byId("progress").value = finished;
  byId("progress-words").textContent = `${finished} of ${overview.cases.length} finished`;
}

const fetchCase = (id) => get(`case?id=${encodeURIComponent(id)}`);
const load = async (id) => put(await fetchCase(id));

function put(next) {
  view = next;
  saving.open(view.id, view.state.version);
  state = null;
  byId("specialty").textContent = view.specialty ?? "";
  byId("narrative").textContent = view.narrative;
  for (const typing of [question, remark]) typing.dirty = false;
  answer.build();
  note.build(view);
  showProgram(view.program);
  showQuestions(view, (text) => actAfterTyping({ do: "question", text }));
  showAnswers(view, (said) => actAfterTyping({ do: "take_answer", lines: said.answer, not_answered: said.not_answered }));
  show(view.state);
}

async function go(id) {
  if (!id || id === view?.id) return;
  const next = await fetchCase(id);
  if (view) {
    flush(); // what was done meanwhile belongs to the case that is left
    await saving.drained();
    saving.leave();
  }
  put(next);
  byId("told").hidden = true;
  byId("cases").value = id;
  document.title = `Case ${id} · archehr review`;
  history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  scrollTo({ top: 0, behavior: "instant" });
  byId("note").scrollTop = 0;
  note.focus();
}

const place = () => overview.cases.findIndex((c) => c.id === view.id);
const step = (by) => go(overview.cases[place() + by]?.id);

async function finish() {
  flush();
  act({ do: "finish" });
  await saving.drained();
  if (!state.finished) return;
  const after = [...overview.cases.slice(place() + 1), ...overview.cases.slice(0, place())];
  const next = after.find((c) => c.status !== "finished");
  if (next) await go(next.id);
  else tell("Every case is finished. Export them with archehr review … --export OUT.");
}

// ------------------------------------------------------------------------------------------------- controls

function notAnswered(value) {
  actAfterTyping({ do: "not_answered", value });
}

const onClick = {
  previous: () => step(-1),
  next: () => step(1),
  undo: () => actAfterTyping({ do: "undo" }),
  redo: () => actAfterTyping({ do: "redo" }),
  save: flush,
  reveal: () => actAfterTyping({ do: "reveal" }),
  "mark-rest": () => actAfterTyping({ do: "mark_rest" }),
  finish,
  reopen: () => actAfterTyping({ do: "finish", value: false }),
  "told-close": () => (byId("told").hidden = true),
  "linking-back": () => answer.edit(answer.chosen),
};
for (const [id, action] of Object.entries(onClick)) byId(id).addEventListener("click", action);
byId("cases").addEventListener("change", (event) => go(event.target.value));
byId("not-answered").addEventListener("change", (event) => notAnswered(event.target.checked));
byId("harm").addEventListener("change", (event) => actAfterTyping({ do: "harm", value: event.target.value }));

listen({
  save: flush,
  finish,
  undo: onClick.undo,
  redo: onClick.redo,
  leaveField: () => note.focus(),
  nextSentence: () => note.move(1),
  previousSentence: () => note.move(-1),
  letters: {
    j: () => note.move(1),
    k: () => note.move(-1),
    1: () => note.mark("essential"),
    2: () => note.mark("supplementary"),
    3: () => note.mark("not-relevant"),
    x: () => note.toggleLink(),
    "]": () => answer.move(1),
    "[": () => answer.move(-1),
    e: () => answer.edit(),
    a: () => answer.add(),
    q: () => byId("question").focus(),
    m: () => byId("remark").focus(),
    g: () => (document.querySelector("#harm :checked") ?? document.querySelector("#harm input")).focus(),
    d: () => notAnswered(!state.not_answered),
    v: () => state.hidden && onClick.reveal(),
    u: onClick.undo,
    U: onClick.redo,
    s: flush,
    f: finish,
    n: onClick.next,
    p: onClick.previous,
    "?": () => byId("keys").showModal(),
  },
});

// ------------------------------------------------------------------------------------------------- leaving

addEventListener("beforeunload", (event) => {
  flush();
  if (saving.pending) event.preventDefault();
});
addEventListener("pagehide", () => {
  flush();
  saving.leave();
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") flush();
  else lookAgain();
});
addEventListener("focus", lookAgain);

// Another window may have worked on this case meanwhile.
async function lookAgain() {
  if (!view || saving.pending || typingNow()) return;
  const now = await fetchCase(view.id).catch(() => null);
  if (now?.id !== view.id || now.state.version <= state.version || saving.pending || typingNow()) return;
  put(now);
  tell("This case was changed in another window. You see it as it is now.");
}

// ------------------------------------------------------------------------------------------------- start

overview = await get("cases");
byId("cases").replaceChildren(...overview.cases.map((c) => element("option", c.id + MARK[c.status], { value: c.id })));
byId("progress").max = overview.cases.length;
byId("where").textContent = `Reviewer ${overview.reviewer}, ${overview.subject}. Everything saved is in ${overview.journal}.`;
const asked = decodeURIComponent(location.hash.slice(1));
const first = overview.cases.find((c) => c.id === asked) ?? overview.cases.find((c) => c.status !== "finished") ?? overview.cases[0];
await go(first.id);
