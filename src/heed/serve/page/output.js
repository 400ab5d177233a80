// The translation, with a button for each sentence.

import { el, rove } from "./dom.js";

/** `choose(number)` is called when a sentence is chosen. */
export function outputView(choose) {
  const node = el("div", { class: "output", dir: "auto", role: "region", "aria-label": "translation", tabindex: "0" });
  let answer = null;

  /** Index of the first character of a sentence in the text; -1 if the text does not contain it. */
  function placeOf(sentence) {
    let begin = -1;
    for (let place = 0, end = 0; place <= sentence; place++) {
      const { text } = answer.sentences[place].hypotheses[0];
      begin = answer.text.indexOf(text, end);
      if (begin < 0) return -1;
      end = begin + text.length;
    }
    return begin;
  }

  function fill() {
    const isPlain = answer.sentences.length < 2 && !answer.sentences[0]?.hypotheses[0].flags.length;
    if (isPlain) {
      node.textContent = answer.text;
      return;
    }
    const parts = [];
    const choices = [];
    let end = 0;
    answer.sentences.forEach(({ hypotheses: [best] }, place) => {
      const begin = placeOf(place);
      if (begin < 0 || !best.text) return;
      choices.push(sentenceButton(best, place));
      parts.push(answer.text.slice(end, begin), choices.at(-1));
      end = begin + best.text.length;
    });
    const text = el("span", {}, ...parts, answer.text.slice(end));
    if (choices.length) rove(text, [choices]);
    node.replaceChildren(text);
  }

  function sentenceButton({ text, flags }, place) {
    const onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(place);
    };
    const doubted = flags.length ? " doubted" : "";
    const title = flags.length ? `doubtful: ${flags.join(", ")}` : null;
    const attributes = { role: "button", class: `sentence-of${doubted}`, title, "aria-pressed": "false" };
    const button = el("span", { ...attributes, onclick: () => choose(place), onkeydown }, text);
    button.dataset.place = place;
    return button;
  }

  return {
    node,
    /** The text so far. */
    partial: (text) => {
      node.textContent = text;
    },
    /** An answer, or null for none. */
    show(newAnswer) {
      answer = newAnswer;
      node.classList.remove("waiting");
      if (answer) fill();
      else node.replaceChildren();
    },
    /** Replace the text of a sentence. */
    replace(sentence, text) {
      const best = answer.sentences[sentence].hypotheses[0];
      const begin = placeOf(sentence);
      if (begin >= 0) answer.text = answer.text.slice(0, begin) + text + answer.text.slice(begin + best.text.length);
      best.text = text;
      fill();
    },
    mark(sentence) {
      for (const each of node.querySelectorAll(".sentence-of")) {
        each.setAttribute("aria-pressed", Number(each.dataset.place) === sentence ? "true" : "false");
      }
    },
  };
}
