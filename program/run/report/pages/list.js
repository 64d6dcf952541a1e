"use strict";
// The list of cases: filters, search, order, and pages of 50. Texts are only ever set as text.
(() => {
  const PER_PAGE = 50;
  const WORD = /[\p{L}\p{N}_]+(?:[-'.][\p{L}\p{N}_]+)*/gu; // as view.py finds words
  const { looks, cases } = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const [list, count, place, earlier, later] = ["list", "count", "place", "earlier", "later"].map(byId);
  const [search, notice, sort] = ["search", "notice", "sort"].map(byId);
  const buttons = [...document.querySelectorAll("button[data-look]")];
  const scored = Boolean(sort.querySelector("[value=score]"));
  const gravest = Object.keys(looks);
  // On a page that holds the cases themselves, they are filtered and ordered with the list.
  const articles = new Map();
  cases.forEach((one, number) => {
    one.number = number;
    if (one.href.startsWith("#")) articles.set(one, byId(one.href.slice(1)).closest("article"));
  });
  let look = "";
  let order = "";
  let page = 0;
  let found = cases;

  const rank = {
    "": (one) => one.number,
    looks: (one) => (one.looks.length ? gravest.indexOf(one.looks[0]) : gravest.length),
    confidence: (one) => one.confidence ?? 2,
    score: (one) => one.score ?? 101,
  };

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const tag = (one) => {
    const { sign, name, tone } = looks[one.looks[0]] ?? { sign: "✓", name: "", tone: "good" };
    const made = element("span", name ? `${sign} ${name}` : sign, `tag ${tone}`);
    if (!name) made.setAttribute("aria-label", "nothing to look at");
    if (!name) made.setAttribute("role", "img");
    return made;
  };
  const row = (one) => {
    const made = element("tr");
    const link = element("a", one.id);
    link.href = one.href;
    const cells = [tag(one), link, element("span", one.question)];
    cells.push(element("span", one.confidence === null ? "–" : `${Math.round(100 * one.confidence)} %`));
    if (scored) cells.push(element("span", one.score === null ? "–" : one.score.toFixed(1)));
    cells.forEach((content, column) => {
      const cell = element("td", undefined, column > 2 ? "n optional" : "");
      cell.append(content);
      made.append(cell);
    });
    return made;
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    list.replaceChildren(...found.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(row));
    place.textContent = `page ${page + 1} of ${pages}`;
    earlier.disabled = page === 0;
    later.disabled = page === pages - 1;
    earlier.parentElement.hidden = pages === 1;
    count.textContent = `${found.length} of ${cases.length} cases shown`;
  };
  const choose = () => {
    const asked = search.value.trim().toLowerCase();
    const words = asked.match(WORD) ?? [];
    const says = (one) => one.id.toLowerCase().includes(asked) || (words.length && words.every((word) => (one.words ?? one.question.toLowerCase()).includes(word)));
    const fits = (one) => (look === "clear" ? !one.looks.length : !look || one.looks.includes(look))
      && (!notice.value || one.notices.includes(notice.value))
      && says(one);
    const by = rank[sort.value];
    const inOrder = (a, b) => by(a) - by(b) || a.number - b.number;
    found = cases.filter(fits).sort(inOrder);
    if (articles.size) {
      const shown = new Set(found);
      for (const [one, article] of articles) article.hidden = !shown.has(one);
      if (order !== sort.value) byId("cases").append(...[...cases].sort(inOrder).map((one) => articles.get(one)));
      order = sort.value;
    }
    page = 0;
    show();
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      look = button.dataset.look;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      choose();
    });
  }
  search.addEventListener("input", choose);
  notice.addEventListener("change", choose);
  sort.addEventListener("change", choose);
  earlier.addEventListener("click", () => { page -= 1; show(); });
  later.addEventListener("click", () => { page += 1; show(); });
  choose();
})();
