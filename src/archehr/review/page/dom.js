// Small helpers for the page's elements. Text is always set as text, never as markup.

export const byId = (id) => document.getElementById(id);

export function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function button(text, action, attributes = {}) {
  const made = element("button", text, { type: "button", ...attributes });
  made.addEventListener("click", action);
  return made;
}

export const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

export const words = (text) => text.trim().split(/\s+/u).filter(Boolean).length;

// The server counts characters as code points, a text area as UTF-16 units.
export const codePoints = (text) => [...text].length;

export function showCount(target, count, limit) {
  target.textContent = `${count} of ${limit} words`;
  target.classList.toggle("over", count > limit);
}

export function fit(area) {
  if (CSS.supports("field-sizing", "content")) return; // the style sheet does it
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}
