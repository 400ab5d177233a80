// Alternatives: the n-best outputs, with their differences from the first.

import { el } from "./dom.js";

const MAX_WORDS = 400; // of a text that is compared

/** Pairs [word, differs] of `text`: a word differs if it is not in the longest common subsequence with `other`. */
export function difference(text, other) {
  const [a, b] = [text, other].map((line) => line.match(/\s*\S+/gu) ?? []);
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) return a.map((word) => [word, false]);
  const [x, y] = [a, b].map((words) => words.map((word) => word.trim()));
  const length = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--)
      length[i][j] = x[i] === y[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  const out = [];
  for (let i = 0, j = 0; i < x.length;) {
    if (j < y.length && x[i] === y[j]) {
      out.push([a[i], false]);
      i++;
      j++;
    } else if (j < y.length && length[i][j + 1] >= length[i + 1][j]) j++;
    else {
      out.push([a[i], true]);
      i++;
    }
  }
  return out;
}

function signed(number) {
  return number === null ? "unknown" : number.toFixed(2).replace("-", "\u2212");
}

/** `choose(text)` inspects another output; null in a file, which has no server. */
export function alternativesView(data, languages, chosen, choose) {
  const best = data.alternatives[0];
  const items = data.alternatives.map((each, rank) => {
    const words = rank === 0 ? [[each.text, false]] : difference(each.text, best.text);
    const text = el(
      "span",
      { class: "text", dir: "auto", lang: languages.target || null },
      ...words.flatMap(([word, differs]) => (differs ? [word.match(/^\s*/u)[0], el("mark", {}, word.trim())] : [word])),
    );
    const score = el(
      "span",
      { class: "number" },
      `score ${signed(each.score)}, log-probability ${signed(each.log_prob)}`,
    );
    const notes = [
      rank === 0 && data.fallback ? "replaces an output that failed the output checks" : "",
      each.finished ? "" : "cut off",
    ].filter(Boolean);
    const body = [text, score, ...notes.map((note) => el("span", { class: "mark" }, note))];
    if (!choose) return el("li", {}, ...body);
    const radio = el("input", {
      type: "radio",
      name: "alternative",
      checked: each.text === chosen,
      onchange: () => choose(each.text),
    });
    return el("li", {}, el("label", {}, radio, ...body));
  });
  const legend = "Differences from the first are marked. The score is the log-probability, corrected for length.";
  const lead = choose ? `Choose one to inspect it. ${legend}` : legend;
  return {
    node: el("div", {}, el("p", { class: "lead" }, lead), el("ol", { class: "alternatives" }, ...items)),
    paint() {},
  };
}
