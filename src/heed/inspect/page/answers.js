// The answers to a text as bars, and what the best one rests on: words, n-grams, and attention to sentences and words.

import { el, percent, setNumber } from "./dom.js";

/** An answer with its probability as a bar. A number has no probability. */
export function answerBar({ text, probability }) {
  if (probability === null) return el("p", { class: "answer-number" }, text);
  const track = el("span", { class: "track" }, el("span", { class: "fill" }));
  setNumber(track, "share", probability);
  return el(
    "div",
    { class: "answer" },
    el("span", { class: "answer-name", dir: "auto" }, text),
    track,
    el("span", { class: "answer-share" }, percent(probability)),
  );
}

/** The parts of an explanation: sentences with attention, the text with its words marked, and n-grams. */
export function explanationParts({ answer, words, ngrams, sentences }) {
  const most = Math.max(1e-9, ...words.map(({ weight }) => Math.abs(weight)));
  const marked = words.flatMap(({ text, weight }) => [markedWord(text, weight, most), " "]);
  const parts = [
    ...(sentences.length ? attention(sentences) : []),
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
function attention(sentences) {
  const most = Math.max(...sentences.map(({ weight }) => weight));
  const lines = sentences.map((sentence) => attendedSentence(sentence, most));
  return [
    el("h2", {}, "Where the neural reader looks"),
    el("ol", { class: "attended" }, ...lines),
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

/** All of an inspected answer. */
export function answerView({ answers, explanation }) {
  return el(
    "section",
    { class: "inspection" },
    el("div", { class: "answers" }, ...answers.map(answerBar)),
    el("div", { class: "basis" }, ...explanationParts(explanation)),
  );
}
