// The beam as a tree: a column of prefixes for each step, and a line from each to its parent.

import { checkbox, el, hasModifier, percent, pieceName, scrollable, svg, visible } from "./dom.js";

export function treeView(data, languages) {
  const { nodes } = data.tree;
  const children = nodes.map(() => []);
  nodes.forEach((node, number) => {
    if (node.parent >= 0) children[node.parent].push(number);
  });
  const columns = ordered(nodes, children);
  const spaced = !nodes.some((node) => node.text.startsWith(" ")); // tokens that are words
  const status = el("p", { class: "status quiet" });
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const buttons = nodes.map((node, number) => button(node, number));
  const lists = columns.map((column, step) =>
    el(
      "ol",
      { "aria-label": `step ${step + 1}` },
      ...column.map((number) => el("li", { class: nodes[number].fate }, buttons[number])),
    ),
  );
  const field = el("div", { class: "tree", lang: languages.target || null }, lines, ...lists);
  const frame = scrollable(el("div", { class: "frame scroll" }, field));
  const node = el(
    "div",
    {},
    el(
      "p",
      { class: "lead" },
      `Each step keeps the ${data.tree.beam_size} most likely prefixes. `,
      "The thick line is the output; dropped prefixes are pale.",
    ),
    el(
      "div",
      { class: "controls" },
      checkbox("show dropped prefixes", true, (on) => {
        field.classList.toggle("bare", !on);
        if (!here(buttons.findIndex((each) => each.tabIndex === 0))) reach(columns[0].find(here));
        draw();
      }),
    ),
    frame,
    status,
  );

  function button(each, number) {
    const name = each.text ? pieceName(each) : "end";
    return el(
      "button",
      {
        type: "button",
        class: `node ${each.fate}${each.best ? " best" : ""}`,
        "aria-label": `${name}, ${percent(each.prob)}, ${each.fate}`,
        onmouseenter: () => look(number),
        onfocus: () => look(number),
        onmouseleave: () => look(null),
        onblur: () => look(null),
      },
      el("bdi", {}, name),
      el("span", { class: "number" }, percent(each.prob)),
    );
  }

  function pathTo(number) {
    const path = [];
    for (let each = number; each >= 0; each = nodes[each].parent) path.unshift(each);
    return path;
  }

  function look(number) {
    const path = number === null ? [] : pathTo(number);
    buttons.forEach((each, place) => each.classList.toggle("at", path.includes(place)));
    lines
      .querySelectorAll("path")
      .forEach((line) => line.classList.toggle("at", path.includes(Number(line.dataset.to))));
    if (number === null) {
      status.textContent = "";
      return;
    }
    const { fate, log_prob: total } = nodes[number];
    const text = path.map((each) => (spaced && !nodes[each].goes_on ? " " : "") + nodes[each].text).join("");
    const open = fate === "kept" && children[number].length === 0 ? "active when the search stopped" : fate;
    status.replaceChildren(
      el("bdi", { lang: languages.target || null }, visible(text) || "(end)"),
      ` · log-probability ${total.toFixed(2)} · ${open}`,
    );
  }

  function here(number) {
    return buttons[number].offsetParent !== null;
  }

  /** The node that an arrow key moves to, if there is one. */
  function neighbour(number, key) {
    const column = columns[nodes[number].depth - 1].filter(here);
    const likelier = (a, b) => nodes[b].best - nodes[a].best || nodes[b].log_prob - nodes[a].log_prob;
    if (key === "ArrowUp") return column[column.indexOf(number) - 1];
    if (key === "ArrowDown") return column[column.indexOf(number) + 1];
    if (key === "ArrowLeft") return nodes[number].parent < 0 ? undefined : nodes[number].parent;
    if (key === "ArrowRight") return children[number].filter(here).sort(likelier)[0];
    return columns[0].filter(here)[0];
  }

  function reach(number) {
    for (const each of buttons) each.tabIndex = -1;
    buttons[number].tabIndex = 0;
  }

  field.addEventListener("keydown", (event) => {
    const number = buttons.indexOf(event.target);
    if (number < 0 || hasModifier(event) || !(event.key.startsWith("Arrow") || event.key === "Home")) return;
    event.preventDefault();
    const to = neighbour(number, event.key);
    if (to === undefined) return;
    reach(to);
    buttons[to].focus();
  });
  reach(columns[0][0]);

  function draw() {
    if (!field.offsetParent) return;
    lines.setAttribute("width", field.scrollWidth);
    lines.setAttribute("height", field.scrollHeight);
    const paths = nodes.flatMap((each, number) => {
      if (each.parent < 0 || !buttons[number].offsetParent) return [];
      const [from, to] = [box(buttons[each.parent]), box(buttons[number])];
      const middle = (from.right + to.left) / 2;
      const line = svg("path", {
        d: `M${from.right} ${from.middle}C${middle} ${from.middle} ${middle} ${to.middle} ${to.left} ${to.middle}`,
        class: `${each.fate}${each.best ? " best" : ""}`,
      });
      line.dataset.to = number;
      return [line];
    });
    lines.replaceChildren(...paths);
  }
  const box = (each) => ({
    left: each.offsetLeft,
    right: each.offsetLeft + each.offsetWidth,
    middle: each.offsetTop + each.offsetHeight / 2,
  });
  new ResizeObserver(draw).observe(field);
  return { node, paint() {} };
}

/** The nodes of each step: first those kept, in the order of their parents so that no lines cross, then the dropped. */
function ordered(nodes, children) {
  const columns = [];
  let parents = [-1];
  const roots = nodes.flatMap((node, number) => (node.parent < 0 ? [number] : []));
  while (true) {
    const all = parents.flatMap((parent) => (parent < 0 ? roots : children[parent]));
    if (!all.length) return columns;
    const kept = all.filter((number) => nodes[number].fate !== "dropped");
    const dropped = all
      .filter((number) => nodes[number].fate === "dropped")
      .sort((a, b) => nodes[b].log_prob - nodes[a].log_prob);
    columns.push([...kept, ...dropped]);
    parents = kept;
  }
}
