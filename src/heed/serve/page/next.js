// What would a language model say next?

import { ask } from "./api.js";
import { choiceTable } from "./choices.js";
import { el } from "./dom.js";
import { alertBox, latest } from "./panel.js";

const LONGEST = 2000; // characters before, which the server takes

/** A table of words, or tokens; `write(text)` is called with the text that a chosen one makes. */
export function nextView(write) {
  const table = el("div", {});
  const box = alertBox();
  const work = latest();

  function refresh(model, before) {
    work.run(
      async (signal) => {
        const prefix = before.slice(-LONGEST);
        const { tokens, words } = await ask("api/next", { model: model.name, prefix, size: 12 }, signal);
        const name = words ? "Likeliest next words" : "Likeliest next tokens";
        const choices = (words ?? tokens).map((choice) => shown(choice, before));
        box.clear();
        const pick = ({ text }) => write(before + text);
        table.replaceChildren(choiceTable(`${name}: choose one to write it`, choices, null, model.target?.code, pick));
      },
      (error) => {
        table.replaceChildren();
        box.show(error, () => refresh(model, before));
      },
    );
  }
  return { node: el("div", {}, table, box.node), refresh };
}

function shown({ text, probability, end }, before) {
  return { text, prob: probability, end: Boolean(end), goes_on: /\p{L}$/u.test(before) && /^\p{L}+$/u.test(text) };
}
