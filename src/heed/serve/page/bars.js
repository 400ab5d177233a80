// Answers with their probabilities as bars.

import { el, percent, setNumber } from "./dom.js";

/** The cells of an answer: its text, its probability as a bar and in per cent. A number has no probability. */
export function bar({ text, probability }, node = el("div", { class: "answer" })) {
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
