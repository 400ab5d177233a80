// The list of likely next words.

import { ask } from "./api.js";
import { choiceTable } from "./choices.js";
import { el } from "./dom.js";
import { alertBox, latest } from "./panel.js";

const MAX_PREFIX = 2000; // maximum characters that the server accepts

/** A table of words or tokens. `write(text)` gets the text with the chosen one appended. */
export function nextView(write) {
  const table = el("div", {});
  const box = alertBox();
  const work = latest();

  /** Disable the choices until `refresh`, as they belong to an older text. */
  function wait() {
    work.stop();
    table.inert = true;
    table.classList.add("busy");
  }

  function ready(...content) {
    table.inert = false;
    table.classList.remove("busy");
    table.replaceChildren(...content);
  }

  function refresh(model, before) {
    work.run(
      async (signal) => {
        const prefix = before.slice(-MAX_PREFIX);
        const { tokens, words } = await ask("api/next", { model: model.name, prefix, size: 12 }, signal);
        const name = words ? "Most likely next words" : "Most likely next tokens";
        const choices = (words ?? tokens).map((choice) => shown(choice, before));
        box.clear();
        const pick = ({ text }) => write(before + text);
        ready(choiceTable(`${name}: choose one to add it`, choices, null, model.target?.code, pick));
      },
      (error) => {
        ready();
        box.show(error, () => refresh(model, before));
      },
    );
  }
  return { node: el("div", {}, table, box.node), refresh, wait };
}

function shown({ text, probability, end }, before) {
  return { text, prob: probability, end: Boolean(end), goes_on: /\p{L}$/u.test(before) && /^\p{L}+$/u.test(text) };
}
