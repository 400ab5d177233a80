// Answers with their probabilities as bars, and the words and n-grams that an answer rests on.

import { el, percent, setNumber } from "./dom.js";

/** An answer with its probability as a bar, in a node. A number has no probability. */
export function answerBar({ text, probability }, node = el("div", { class: "answer" })) {
  if (probability === null) return el("p", { class: "answer-number" }, text);
  const track = el("span", { class: "track" }, el("span", { class: "fill" }));
  setNumber(track, "share", probability);
  node.append(
    el("span", { class: "answer-name", dir: "auto" }, text),
    track,
    el("span", { class: "answer-share" }, percent(probability)),
  );
  return node;
}

/** The text with its words marked, and the n-grams for and against the answer. */
export function explanationParts({ answer, words, ngrams }) {
  const most = Math.max(1e-9, ...words.map(({ weight }) => Math.abs(weight)));
  const marked = words.flatMap(({ text, weight }) => [markedWord(text, weight, most), " "]);
  const parts = [
    el("h2", {}, `What speaks for “${answer}”`),
    el("p", { class: "marked", dir: "auto" }, ...marked),
    el(
      "p",
      { class: "quiet" },
      el("span", { class: "weighed for" }, "for"),
      " and ",
      el("span", { class: "weighed against" }, "against"),
      " this answer: the change of its log-odds if the word is left out.",
    ),
  ];
  if (ngrams.length) parts.push(el("h3", {}, "Strongest n-grams of the linear model"), ngramList(ngrams));
  return parts;
}

function markedWord(text, weight, most) {
  const node = el("span", { class: weight < 0 ? "weighed against" : "weighed for", title: signedWeight(weight) }, text);
  setNumber(node, "strength", Math.abs(weight) / most);
  return node;
}

function ngramList(ngrams) {
  const most = Math.max(...ngrams.map(({ weight }) => Math.abs(weight)));
  const items = ngrams.map(({ text, weight }) =>
    el(
      "li",
      {},
      markedWord(text.replaceAll(" ", "␣"), weight, most),
      el("span", { class: "quiet" }, ` ${signedWeight(weight)}`),
    ),
  );
  return el("ul", { class: "ngrams", dir: "auto" }, ...items);
}

function signedWeight(weight) {
  return `${weight < 0 ? "−" : "+"}${Math.abs(weight).toFixed(2)}`;
}
