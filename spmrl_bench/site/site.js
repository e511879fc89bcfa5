// Sorting and filtering of tables, and the comparison of two systems. Every page is whole without
// this file. No library, no request: the counts of a comparison come as a script beside the page.
"use strict";

const spmrlBench = { taken: {}, take: null };

(() => {
  // ---- Values of cells ----

  const text = cell => cell.dataset.text ??= own(cell);

  // Without marks and tags, which say something about a value.
  function own(cell) {
    const copy = cell.cloneNode(true);
    for (const part of copy.querySelectorAll("sup, .tag, .unseen")) part.remove();
    return copy.textContent.trim();
  }

  const number = cell => parseFloat(text(cell).replaceAll(",", "").replace("\u2212", "-"));

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // ---- Sorting ----

  function sortable(grid) {
    const heads = [...grid.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const button = element("button", { type: "button" });
      if (head.querySelector("a")) {
        button.setAttribute("aria-label", `Sort by ${head.textContent.trim()}`);
        head.append(button);
      } else {
        button.append(...head.childNodes);
        head.append(button);
      }
      button.addEventListener("click", () => sort(grid, heads, head, column));
    });
  }

  function sort(grid, heads, head, column) {
    const numeric = head.classList.contains("n");
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = grid.querySelector("tbody");
    const keyed = [...body.rows].map(row => {
      const cell = row.cells[column];
      return { row, key: numeric ? number(cell) : text(cell) };
    });
    // What has no value is last, whichever way.
    const missing = key => key === "" || Number.isNaN(key);
    const order = numeric ? (a, b) => a - b : new Intl.Collator("en", { numeric: true }).compare;
    keyed.sort((a, b) => missing(a.key) - missing(b.key)
      || (missing(a.key) ? 0 : down ? order(b.key, a.key) : order(a.key, b.key)));
    body.append(...keyed.map(one => one.row));
  }

  // ---- Filtering ----

  function filterable(grid) {
    const rows = [...grid.querySelectorAll("tbody tr")];
    const name = grid.querySelector("caption").textContent;
    const search = element("input", { type: "search", autocomplete: "off" });
    const form = element("form", { role: "search", "aria-label": `Filter: ${name}` },
      element("label", {}, "Find ", search));
    const choices = [];
    [...grid.querySelectorAll("thead th")].forEach((head, column) => {
      if (!("choice" in head.dataset)) return;
      const values = [...new Set(rows.map(row => text(row.cells[column])))].filter(Boolean).sort();
      if (values.length < 2) return;
      const select = element("select", {}, element("option", { value: "" }, "all"),
        ...values.map(value => element("option", { value }, value)));
      choices.push({ select, column });
      const title = head.textContent.trim();
      form.append(element("label", {}, `${title[0].toUpperCase()}${title.slice(1)} `, select));
    });
    const found = element("p", { class: "found", role: "status" });
    form.append(found);
    const words = rows.map(row => row.textContent.toLowerCase());
    const apply = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, k) => {
        row.hidden = !(wanted.every(word => words[k].includes(word))
          && choices.every(({ select, column }) =>
            !select.value || text(row.cells[column]) === select.value));
        shown += !row.hidden;
      });
      found.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} rows`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", event => event.preventDefault());
    grid.prepend(form);
  }

  for (const grid of document.querySelectorAll("[data-filter]")) filterable(grid);
  for (const grid of document.querySelectorAll("[data-sort]")) sortable(grid);

  // ---- Any two systems ----

  const place = document.getElementById("comparison");
  if (!place) return;
  const form = place.querySelector("form");
  const { view, one, other } = form.elements;
  const SHOWN = 30;
  const TRIALS = 10000;
  let waiting = null;

  spmrlBench.take = (name, what, content) => {
    spmrlBench.taken[`${name} ${what}`] = content;
    waiting?.();
  };

  function need(name, what, done) {
    if (spmrlBench.taken[`${name} ${what}`]) return done();
    waiting = () => { waiting = null; done(); };
    const file = what === "trees" ? `${name}-trees` : name;
    document.head.append(element("script", { src: `${place.dataset.folder}/${file}.js` }));
  }

  const counts = () => spmrlBench.taken[`${view.value} counts`];

  function fill() {
    const wanted = [one.value, other.value];
    const known = counts().entries.map(entry => entry.id);
    [one, other].forEach((select, k) => {
      select.replaceChildren(...counts().entries.map(entry =>
        element("option", { value: entry.id }, entry.name)));
      select.value = known.includes(wanted[k]) ? wanted[k] : known[Math.min(k, known.length - 1)];
    });
    show();
  }

  const total = values => values.reduce((sum, value) => sum + value, 0);
  const errors = (entry, k) => (entry.all[k] - entry.right[k]) / entry.runs;
  const score = value => value.toFixed(2);
  const brief = value => Number.isInteger(value) ? `${value}` : value.toFixed(2);
  const signed = value => `${value < 0 ? "\u2212" : "+"}${brief(Math.abs(value))}`;

  // Approximate randomisation, as the program makes it; random numbers are the same each time.
  function chance(a, b) {
    let state = 0x9e3779b9;
    const bit = () => {
      state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
      return state >>> 31;
    };
    const sides = [a, b].map((side, k) => {
      const times = (k ? a : b).runs;
      return { right: side.right.map(n => n * times), all: side.all.map(n => n * times) };
    });
    const changed = [...a.right.keys()].filter(k =>
      sides[0].right[k] !== sides[1].right[k] || sides[0].all[k] !== sides[1].all[k]);
    const right = sides.map(side => total(side.right));
    const all = sides.map(side => total(side.all));
    const seen = Math.abs(100 * right[1] / all[1] - 100 * right[0] / all[0]);
    const moves = changed.map(k => [sides[1].right[k] - sides[0].right[k],
      sides[1].all[k] - sides[0].all[k]]);
    let hits = 0;
    for (let trial = 0; trial < TRIALS; trial++) {
      let r = 0;
      let n = 0;
      for (const move of moves) if (bit()) { r += move[0]; n += move[1]; }
      const difference = 100 * (right[1] - r) / (all[1] - n) - 100 * (right[0] + r) / (all[0] + n);
      if (!(Math.abs(difference) < seen - 1e-10)) hits++;
    }
    return (hits + 1) / (TRIALS + 1);
  }

  function show() {
    const data = counts();
    const [a, b] = [one, other].map(select =>
      data.entries.find(entry => entry.id === select.value));
    const verdict = place.querySelector("#verdict");
    const list = place.querySelector("#differing");
    list.replaceChildren();
    if (a === b) {
      verdict.textContent = "Choose two different ones.";
      return;
    }
    const said = [`${data.title}: ${score(a.score)} against ${score(b.score)}, `
      + `a difference of ${signed(Math.round(100 * (b.score - a.score)) / 100)}.`];
    if (a.left_out.join() !== b.left_out.join() || a.right.length !== b.right.length) {
      said.push("They are not of the same sentences, so there is no test.");
      verdict.textContent = said.join(" ");
      return;
    }
    const out = new Set(a.left_out);
    const rows = [...a.right.keys()].filter(k => !out.has(k + 1))
      .map(k => ({ k, a: errors(a, k), b: errors(b, k) }));
    const fewer = rows.filter(row => row.a < row.b).length;
    const more = rows.filter(row => row.a > row.b).length;
    said.push(`p is about ${chance(a, b).toFixed(4)}.`,
      `The first makes fewer errors on ${fewer} sentences, more on ${more}, as many on ${rows.length - fewer - more}.`);
    verdict.textContent = said.join(" ");
    const differing = rows.filter(row => row.a !== row.b)
      .sort((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b) || x.k - y.k);
    if (differing.length) list.append(table(data, a, b, differing.slice(0, SHOWN)));
  }

  function table(data, a, b, rows) {
    const drawable = [a, b].every(entry => data.trees.includes(entry.id));
    const heads = ["sentence", ...(data.words ? ["words"] : []), `errors, ${a.name}`,
      `errors, ${b.name}`, "difference", ...(drawable ? ["trees"] : [])];
    const body = element("tbody");
    for (const row of rows) {
      const cells = [...(data.words ? [data.words[row.k]] : []), brief(row.a), brief(row.b),
        signed(row.a - row.b)];
      const line = element("tr", {}, element("th", { scope: "row" }, `${row.k + 1}`),
        ...cells.map(cell => element("td", { class: "n" }, `${cell}`)));
      if (drawable) {
        const button = element("button", { type: "button", class: "more", "aria-expanded": "false",
          "aria-label": `Trees of sentence ${row.k + 1}` }, "show");
        button.addEventListener("click", () => need(view.value, "trees",
          () => toggle(button, line, row.k, a, b, heads.length)));
        line.append(element("td", {}, button));
      }
      body.append(line);
    }
    const caption = element("caption", { id: "differing-caption" }, element("span", {},
      `The ${rows.length} sentences of ${data.split} on which they differ most`));
    const head = element("thead", {}, element("tr", {}, ...heads.map((title, k) =>
      element("th", { scope: "col", ...(k && title !== "trees" ? { class: "n" } : {}) }, title))));
    const grid = element("div", { class: "grid" }, element("div", { class: "wide", role: "region",
      tabindex: "0", "aria-labelledby": "differing-caption" },
      element("table", {}, caption, head, body)));
    return grid;
  }

  // ---- Trees ----

  function toggle(button, line, k, a, b, width) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", `${!open}`);
    button.textContent = open ? "show" : "hide";
    if (open) return line.nextSibling.remove();
    const trees = spmrlBench.taken[`${view.value} trees`];
    const gold = read(trees.gold[k]);
    const found = [a, b].map(entry => read(trees.entries[entry.id][k]));
    const keys = tree => new Set(tree.nodes.map(node => node.key));
    const parsed = found.map(keys);
    const sides = element("div", { class: "sides" },
      box("gold", "gold", gold, key => parsed.some(set => !set.has(key))),
      ...found.map((tree, j) => box("parser", [a, b][j].name, tree, key => !keys(gold).has(key))));
    line.after(element("tr", {}, element("td", { colspan: `${width}` }, sides)));
  }

  // A bracketed tree as nested nodes, unary chains as one; without recursion, of any depth.
  function read(line) {
    const top = { label: "", children: [], start: 0 };
    const open = [top];
    const nodes = [];
    let words = 0;
    for (const [, bracket, label, word] of line.matchAll(/(\()([^\s()]*)|([^\s()]+)|\)/g)) {
      const last = open[open.length - 1];
      if (bracket) {
        const node = { label, children: [], start: words };
        last.children.push(node);
        open.push(node);
      } else if (word !== undefined) {
        last.word = unescaped(word);
        words++;
      } else {
        last.end = words;
        open.pop();
      }
    }
    const waiting = [top];
    while (waiting.length) {
      const node = waiting.pop();
      while (node !== top && node.children.length === 1 && node.children[0].children.length) {
        node.label += `+${node.children[0].label}`;
        node.children = node.children[0].children;
      }
      if (node !== top && node.children.length) {
        node.key = `${node.start} ${node.end} ${node.label}`;
        nodes.push(node);
      }
      waiting.push(...node.children);
    }
    return { top, nodes };
  }

  const ESCAPES = { "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{",
    "-RCB-": "}" };
  const unescaped = word => ESCAPES[word] ?? word.replaceAll("\\/", "/").replaceAll("\\*", "*");

  function box(kind, title, tree, differs) {
    const side = element("div", { class: `side ${kind}`, dir: "auto" }, element("h3", {}, title));
    const waiting = tree.top.children.map(node => [node, side]).reverse();
    while (waiting.length) {
      const [node, parent] = waiting.pop();
      if (node.word !== undefined) {
        parent.append(element("span", { class: "word" }, node.word));
        continue;
      }
      const drawn = element("span", { class: differs(node.key) ? "node mark" : "node" });
      if (node.label) drawn.append(element("b", {}, node.label));
      parent.append(drawn);
      waiting.push(...node.children.map(child => [child, drawn]).reverse());
    }
    return side;
  }

  view.addEventListener("change", () => need(view.value, "counts", fill));
  one.addEventListener("change", show);
  other.addEventListener("change", show);
  form.addEventListener("submit", event => event.preventDefault());
  place.hidden = false;
  need(view.value, "counts", fill);
})();
