// Every key of the page. Letters and digits act only outside text fields, and can be turned off.

import { byId } from "./dom.js";

export function listen(actions) {
  addEventListener("keydown", (event) => {
    if (byId("keys").open || event.isComposing || event.altKey) return;
    const action = event.ctrlKey || event.metaKey ? withControl(event, actions) : plain(event, actions);
    if (!action) return;
    event.preventDefault();
    action();
  });
  byId("help").addEventListener("click", () => byId("keys").showModal());
}

function withControl(event, actions) {
  if (event.key === "s") return actions.save;
  if (event.key === "Enter") return actions.finish;
  if (event.key.toLowerCase() !== "z" || isText(event.target)) return null; // in a field the browser undoes
  return event.shiftKey ? actions.redo : actions.undo;
}

function plain(event, actions) {
  const { target, key } = event;
  if (isText(target)) return key === "Escape" ? actions.leaveField : null;
  if (target.matches("select")) return null;
  if (key === "ArrowDown" && target.closest("#sentences")) return actions.nextSentence;
  if (key === "ArrowUp" && target.closest("#sentences")) return actions.previousSentence;
  return byId("keys-on").checked ? (actions.letters[key] ?? null) : null;
}

const isText = (target) => target.matches?.("textarea, input:not([type=radio], [type=checkbox])") ?? false;
