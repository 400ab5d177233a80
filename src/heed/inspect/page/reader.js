// All views of a text that a reader read: its words, the answer, tags, likely words at masks, and attention.

import { answerBar, explanationParts } from "./answers.js";
import { choicesView, leastSure } from "./choices.js";
import { el, percent, setNumber, visible } from "./dom.js";
import { attentionOf, heatMapView } from "./heat_map.js";
import { latticeView } from "./lattice.js";
import { sentenceView } from "./sentence.js";
import { spansView } from "./spans.js";
import { tabView } from "./view.js";
import { layerChoices, matrixOf } from "./weights.js";

const unchanging = (node) => ({ node, paint: () => null });

/** The views of `data`, a ReaderInspection. */
export function readerView(data, languages) {
  const attention = data.attention[0];
  const state = {
    kind: attention?.kind ?? null,
    layer: attention ? layerChoices(attention)[0][0] : null,
    head: "mean",
    numbers: false,
    row: null,
    column: null,
    chosen: firstChosen(data),
  };
  let matrix = null;
  let key = null;
  const sentence = sentenceView(data, languages, state, () => paint());
  const predicts = data.target.some(hasChoices);
  const views = [
    ...(data.lattice ? [["Tags", unchanging(latticeView(data, data.target.filter(isText)))]] : []),
    ...(data.answers.length && !data.lattice ? [["Answer", unchanging(data.spans ? spansView(data) : answerView(data))]] : []),
    ...(predicts ? [["Likely words", choicesView(data, languages, state)]] : []),
    ...(attention ? [["Attention", heatMapView(data, languages, state, () => paint())]] : []),
  ];
  const panels = views.map(([name, view]) => [name, view.node]);
  const [only, ...others] = panels;
  const tabs = others.length ? tabView(panels, () => paint()) : { node: only?.[1], shown: () => only?.[0] };

  function paint() {
    const now = [state.layer, state.head].join();
    if (attention && now !== key) matrix = matrixOf(attentionOf(data, state.kind), state.layer, state.head);
    key = now;
    node.classList.toggle("shows-choices", tabs.shown() === "Likely words");
    sentence.paint(matrix);
    for (const [, view] of views) view.paint(matrix);
  }
  const lines =
    predicts || attention
      ? el("div", { class: "sentence" }, sentence.target, sentence.status, readerLegend(predicts, attention))
      : null;
  const node = el("div", { class: "inspection" }, lines, tabs.node);
  paint();
  return node;
}

function isText(word) {
  return word.kind === "word";
}

function hasChoices(word) {
  return word.tokens.some((token) => token.choices.length);
}

/** The first mask of a text, or its least likely word. */
function firstChosen(data) {
  const mask = data.target.findIndex((word) => word.prob === null && hasChoices(word));
  return mask < 0 ? leastSure(data) : mask;
}

function readerLegend(predicts, attention) {
  const parts = [];
  if (predicts)
    parts.push(
      "The thicker the underline, the less the model expected the word, given all others.",
      "Choose a word to see what it expected.",
    );
  if (attention) parts.push("Point at a word, or move to it with the tab and arrow keys, to see what it attends to.");
  return el("p", { class: "legend quiet" }, parts.join(" "));
}

function answerView({ answers, explanation, pooling, target }) {
  return el(
    "div",
    { class: "basis" },
    el("div", { class: "answers" }, ...answers.map((each) => answerBar(each))),
    ...(pooling && Math.max(...pooling) > Math.min(...pooling) ? pooledNodes(pooling, target) : []),
    ...(explanation ? explanationParts(explanation) : []),
  );
}

/** The words with their share in the vector that the answer is computed from. */
function pooledNodes(pooling, target) {
  const most = Math.max(...pooling);
  const marks = target.flatMap((word, place) => {
    const share = pooling[place];
    const name = visible(word.text) || word.kind;
    const node = el("span", { class: "weighed for", title: percent(share) }, name);
    setNumber(node, "strength", share / most);
    return word.kind === "begin" ? [] : [node, " "];
  });
  return [
    el("h2", {}, "What the answer attends to"),
    el("p", { class: "marked", dir: "auto" }, ...marks),
    el("p", { class: "quiet" }, "The share of each word in the vector that the answer is computed from."),
  ];
}
