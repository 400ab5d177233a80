// Answers to a question in their context: how probable it is that the answer begins and ends at each word.

import { answerBar } from "./answers.js";
import { el, percent, setNumber } from "./dom.js";

const NOTHING = "no answer in this text";
const LEAST = 0.005; // probabilities that are named in a word's title

/** Answers as bars, of which one is marked in the context, and two bars at each word of the context. */
export function spansView({ answers, spans, target }) {
  const words = wordsOf(target, spans.first, spans.starts.length);
  const nodes = words.map(({ text }, place) => spot(text, spans.starts[place], spans.ends[place]));
  const bars = answers.map((answer) => {
    const bar = el("button", { type: "button", class: "answer choice", onclick: () => mark(answer, bar) });
    return answerBar({ ...answer, text: answer.text || NOTHING }, bar);
  });

  function mark(answer, chosen) {
    for (const each of bars) each.setAttribute("aria-pressed", each === chosen);
    words.forEach(({ start, end }, place) =>
      nodes[place].classList.toggle("answered", answer.start !== null && start < answer.end && end > answer.start),
    );
  }

  if (answers.length) mark(answers[0], bars[0]);
  const listed = answers.some((answer) => !answer.text);
  const none = spans.none === null || listed ? [] : [el("p", { class: "quiet" }, `No answer: ${percent(spans.none)}`)];
  return el(
    "div",
    { class: "basis" },
    el("div", { class: "answers" }, ...bars),
    ...none,
    el("h2", {}, "Where the answer begins and ends"),
    el("p", { class: "marked spots", dir: "auto" }, ...nodes.flatMap((node, place) => [words[place].before, node, words[place].after])),
    el(
      "p",
      { class: "quiet" },
      el("span", { class: "spot key begins" }, "Above"),
      " a word: the probability that the answer begins with it; ",
      el("span", { class: "spot key ends" }, "below"),
      ": that it ends with it, over all answers that are possible. Choose an answer to mark it.",
    ),
  );
}

/** The words of the context, the blanks around each, and their places in it, in characters. */
function wordsOf(target, first, number) {
  let done = 0;
  return target.slice(first, first + number).map(({ text }) => {
    const [before] = /^\s*/u.exec(text);
    const shown = text.trim();
    const start = done + Array.from(before).length; // places count characters, not UTF-16 units
    const after = text.slice(before.length + shown.length);
    done += Array.from(text).length;
    return { before, text: shown, after, start, end: start + Array.from(shown).length };
  });
}

function spot(text, begins, ends) {
  const said = [
    ...(begins >= LEAST ? [`begins here: ${percent(begins)}`] : []),
    ...(ends >= LEAST ? [`ends here: ${percent(ends)}`] : []),
  ].join(", ");
  const node = el("span", { class: "spot", title: said || null }, text);
  setNumber(node, "begins", Math.sqrt(begins));
  setNumber(node, "ends", Math.sqrt(ends));
  return node;
}
