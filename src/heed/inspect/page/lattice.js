// The tags that a tagger considers at each word, with their probabilities, and the steps between them.

import { el, percent, rove, scrollable, setNumber, svg, visible } from "./dom.js";
import { markedText, taggedWords, typesOf } from "./entities.js";

/** The best tagging, the lattice, and other taggings. `words` are those with tags. */
export function latticeView({ answers, lattice }, words) {
  const [best, ...others] = answers;
  const tags = best.text.split(" ");
  const isPlain = !best.entities.length && tags.some((tag) => tag !== "O");
  const text = words.map((word) => word.text).join("");
  const nodes = isPlain ? taggedWords(best.tokens, tags) : markedText(text, best.entities, typesOf([best]));
  const list = others.map(({ text, probability }) =>
    el("li", {}, el("bdi", {}, text), " ", el("span", { class: "number" }, percent(probability))),
  );
  return el(
    "div",
    {},
    el("div", { class: "tagging", dir: "auto" }, el("p", {}, ...nodes)),
    el(
      "p",
      { class: "quiet" },
      `Probability of all these tags together: ${percent(best.probability)}. Below, the larger a circle, the more `,
      "probable the tag of the word over all taggings; the thicker a line, the more probable both tags together. ",
      "Filled circles are the best tagging.",
    ),
    scrollable(el("div", { class: "frame" }, latticeTable(lattice, words))),
    list.length ? el("h2", {}, "Other taggings") : null,
    list.length ? el("ol", { start: 2, class: "taggings" }, ...list) : null,
  );
}

function latticeTable(lattice, words) {
  const cells = lattice.tags.map((tag, k) => lattice.marginals.map((row, t) => latticeCell(lattice, words, tag, k, t)));
  const head = el(
    "tr",
    { role: "row" },
    el("td", { role: "presentation" }),
    ...words.map((word) => el("th", { role: "columnheader", scope: "col" }, el("bdi", {}, visible(word.text)))),
  );
  const rows = lattice.tags.map((tag, k) =>
    el("tr", { role: "row" }, el("th", { role: "rowheader", scope: "row" }, el("bdi", {}, tag)), ...cells[k]),
  );
  const table = el(
    "table",
    { class: "lattice", role: "grid", "aria-label": "Tags: a row for each tag, a column for each word" },
    el("thead", { role: "rowgroup" }, head),
    el("tbody", { role: "rowgroup" }, ...rows),
  );
  rove(table, cells);
  return el("div", { class: "net" }, stepLines(lattice), table);
}

function latticeCell(lattice, words, tag, k, t) {
  const share = lattice.marginals[t][k];
  const circle = el("span", { class: lattice.best[t] === k ? "circle best" : "circle" });
  setNumber(circle, "size", Math.sqrt(share));
  const name = `${visible(words[t].text)} is ${tag}: ${percent(share)}`;
  return el("td", { role: "gridcell", "aria-label": name, title: name }, circle);
}

/** A line for each probable step, in the units of the table: a column for each word, a row for each tag. */
function stepLines({ tags, marginals, steps, best }) {
  const lines = svg("svg", {
    class: "steps",
    viewBox: `0 0 ${marginals.length} ${tags.length}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  steps.forEach((pairs, t) =>
    pairs.forEach(([from, to, share]) => {
      const isBest = best[t] === from && best[t + 1] === to;
      const line = svg("path", {
        d: `M${t + 0.5} ${from + 0.5}L${t + 1.5} ${to + 0.5}`,
        "stroke-width": (0.75 + 3 * share).toFixed(2),
        "stroke-opacity": (0.2 + 0.8 * share).toFixed(2),
      });
      if (isBest) line.setAttribute("class", "best");
      lines.append(line);
    }),
  );
  setNumber(lines, "columns", marginals.length);
  setNumber(lines, "rows", tags.length);
  return lines;
}
