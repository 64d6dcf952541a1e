"use strict";
// Citations: a click shows the sentence in the note beside the answer, arrow keys go from one to the next, Esc back.
(() => {
  const GAP = 8;
  let from = null; // the citation that was followed last

  const target = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const citations = () => [...document.querySelectorAll("a.cite")].filter((link) => !link.closest("article").hidden);

  // Scrolls the note in its pane, and the page only as far as citation and sentence are not both in view. A case that
  // comes into view is laid out then, and the pane of a phone sticks to its bottom: so more than once.
  const keepBoth = (link, sentence) => {
    const pane = sentence.closest(".pane");
    for (let time = 0; time < 5; time += 1) {
      const inPane = sentence.getBoundingClientRect().top - pane.getBoundingClientRect().top;
      pane.scrollTop += inPane - Math.max(0, (pane.clientHeight - sentence.offsetHeight) / 2);
      const [cited, said, frame] = [link, sentence, pane].map((one) => one.getBoundingClientRect());
      const stacked = frame.left < cited.right;
      const bottom = stacked ? Math.min(frame.top, window.innerHeight) : window.innerHeight;
      const high = stacked ? cited.top : Math.min(cited.top, said.top);
      const low = stacked ? cited.bottom : Math.max(cited.bottom, said.bottom);
      if (low > bottom - GAP) window.scrollBy(0, Math.min(low - bottom + GAP, high - GAP));
      else if (high < GAP) window.scrollBy(0, high - GAP);
    }
  };
  const follow = (link) => {
    for (const old of document.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    from = link;
    const sentence = target(link);
    link.setAttribute("aria-current", "true");
    sentence.setAttribute("aria-current", "true");
    keepBoth(link, sentence);
    return sentence;
  };
  const back = (link) => {
    link.focus({ preventScroll: true });
    link.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = citations();
    const next = all[all.indexOf(from) + by];
    if (!next) return;
    next.focus({ preventScroll: true });
    follow(next);
  };
  const toCase = (article, by) => {
    const side = by > 0 ? "nextElementSibling" : "previousElementSibling";
    let next = article[side];
    while (next && next.hidden) next = next[side];
    const heading = (next || article).querySelector("h2");
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "start" });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.matches(".cite")) {
      event.preventDefault();
      history.replaceState({ citation: citations().indexOf(link) }, "");
      history.pushState(null, "");
      follow(link).focus({ preventScroll: true });
    } else if (link.matches(".back")) {
      event.preventDefault();
      const cites = [...target(link).querySelectorAll("a.cite")];
      from = cites.find((one) => target(one) === link.closest("li")) || cites[0];
      follow(from);
      back(from);
    } else if (link.dataset.step) {
      event.preventDefault();
      toCase(link.closest("article"), Number(link.dataset.step));
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const at = event.target;
    const onCitation = at.matches?.("a.cite");
    if (onCitation) from = at;
    const onSentence = from && at === target(from);
    if (!onCitation && !onSentence) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, ...(onCitation ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (by) step(by);
    else if (event.key === "Escape" && onSentence) back(from);
    else return;
    event.preventDefault();
  });
  window.addEventListener("popstate", (event) => {
    const link = citations()[event.state?.citation ?? -1];
    if (link) back(link);
  });
})();
