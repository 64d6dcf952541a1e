"use strict";
(() => {
  const list = document.getElementById("case-list");
  const cases = [...list.querySelectorAll("details.case")];
  const search = document.getElementById("search");
  const sort = document.getElementById("sort");
  const differing = document.getElementById("differing");
  const count = document.getElementById("count");

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of cases) {
      const text = one.dataset.text;
      one.hidden = !words.every((w) => text.includes(w)) || (differing.checked && one.dataset.differs !== "yes");
      shown += one.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${cases.length} cases shown`;
  };

  const order = () => {
    const by = sort.value;
    const number = (one) => Number(one.dataset[by]);
    const sorted = by === "position" ? [...cases].sort((a, b) => number(a) - number(b))
      : [...cases].sort((a, b) => number(b) - number(a) || a.dataset.position - b.dataset.position);
    list.append(...sorted);
  };

  search.addEventListener("input", filter);
  differing.addEventListener("change", filter);
  sort.addEventListener("change", order);
  for (const box of document.querySelectorAll("input[data-row]")) {
    box.addEventListener("change", () => document.body.classList.toggle(`hide-${box.dataset.row}`, !box.checked));
  }
  document.getElementById("open-all").addEventListener("click", () => {
    const open = cases.some((one) => !one.hidden && !one.open);
    for (const one of cases) if (!one.hidden) one.open = open;
  });

  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  openTarget();
  filter();
})();
