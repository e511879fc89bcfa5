// Sorting and filtering of tables. Every page is whole without this file.
"use strict";

// Without marks and tags, which say something about a value.
const text = cell => {
  const copy = cell.cloneNode(true);
  for (const part of copy.querySelectorAll("sup, .tag")) part.remove();
  return copy.textContent.trim();
};
const number = cell => parseFloat(text(cell).replaceAll(",", "").replace("\u2212", "-"));

function sort(grid, head, column) {
  const numeric = head.classList.contains("n");
  const before = head.getAttribute("aria-sort");
  const down = before ? before === "ascending" : numeric;
  for (const one of grid.querySelectorAll("th[aria-sort]")) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = grid.querySelector("tbody");
  const keyed = [...body.rows].map(row => ({ row, key: (numeric ? number : text)(row.cells[column]) }));
  // What has no value is last, whichever way.
  const missing = key => key === "" || Number.isNaN(key);
  const order = numeric ? (a, b) => a - b : new Intl.Collator("en", { numeric: true }).compare;
  keyed.sort((a, b) => missing(a.key) - missing(b.key)
    || (missing(a.key) ? 0 : down ? order(b.key, a.key) : order(a.key, b.key)));
  body.append(...keyed.map(one => one.row));
}

for (const grid of document.querySelectorAll("[data-sort]")) {
  [...grid.querySelectorAll("thead th")].forEach((head, column) => {
    const button = document.createElement("button");
    if (head.querySelector("a")) button.setAttribute("aria-label", `Sort by ${head.textContent}`);
    else button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(grid, head, column));
  });
}

for (const grid of document.querySelectorAll("[data-filter]")) {
  const rows = [...grid.querySelectorAll("tbody tr")];
  const form = document.createElement("form");
  const label = document.createElement("label");
  const search = Object.assign(document.createElement("input"), { type: "search" });
  const found = document.createElement("output");
  label.append("Find rows with ", search);
  form.replaceChildren(label, " ", found);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", () => {
    const wanted = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const all = row.textContent.toLowerCase();
      row.hidden = !wanted.every(word => all.includes(word));
    }
    const shown = rows.filter(row => !row.hidden).length;
    found.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  });
  grid.prepend(form);
}
