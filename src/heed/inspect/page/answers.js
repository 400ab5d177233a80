// Answers with their probabilities as bars, and what an answer rests on: words, n-grams, sentences with attention.

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

/** Sentences with attention, the text with its words marked, and the n-grams for and against the answer. */
export function explanationParts({ answer, words, ngrams, sentences = [] }) {
  const most = Math.max(1e-9, ...words.map(({ weight }) => Math.abs(weight)));
  const marked = words.flatMap(({ text, weight }) => [markedWord(text, weight, most), " "]);
  const parts = [
    ...(sentences.length ? attendedParts(sentences) : []),
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

/** A line for each sentence: its share of the attention as a bar, and its words, darker with more attention. */
function attendedParts(sentences) {
  const most = Math.max(...sentences.map(({ weight }) => weight));
  return [
    el("h2", {}, "Where the neural reader looks"),
    el("ol", { class: "attended" }, ...sentences.map((sentence) => attendedSentence(sentence, most))),
    el(
      "p",
      { class: "quiet" },
      "Bars: the share of the attention to each sentence. Words: shares inside their sentence, paler in sentences with less " +
        "attention. Attention shows where a model looks, not why it answers.",
    ),
  ];
}

function attendedSentence({ weight, words }, mostOfSentence) {
  const most = Math.max(1e-9, ...words.map((word) => word.weight));
  const nodes = words.flatMap((word) => {
    const node = el("span", { class: "weighed for", title: percent(word.weight) }, word.text);
    setNumber(node, "strength", (word.weight / most) * Math.sqrt(weight / mostOfSentence));
    return [node, " "];
  });
  const track = el("span", { class: "track" }, el("span", { class: "fill" }));
  setNumber(track, "share", weight / mostOfSentence);
  return el(
    "li",
    {},
    el("span", { class: "answer-share" }, percent(weight)),
    track,
    el("span", { class: "said", dir: "auto" }, ...nodes),
  );
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
