// Panel for looking inside a reader: a text with its answer, tags or likely words, and the attention between its words.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { alertBox, latest, modelChoice, onControlEnter } from "./panel.js";
import { readerView } from "./reader.js";

export function readPanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("read"));
  const state = { model: models[0] };
  const work = latest();
  const box = alertBox();
  const question = el("input", {
    id: "to-ask",
    type: "text",
    dir: "auto",
    autocomplete: "off",
    onkeydown: (event) => event.key === "Enter" && !event.isComposing && read(),
  });
  const asked = el("label", { class: "field asked" }, el("span", {}, "Question"), question);
  const area = el("textarea", {
    id: "to-read",
    dir: "auto",
    placeholder: "Type or paste a text",
    onkeydown: onControlEnter(read),
  });
  const hint = el("p", { class: "quiet" }, "A masked language model also predicts each word that is written <mask>.");
  const view = el("div", {});
  const label = el("label", { class: "hidden", for: "to-read" }, "Text to look into");
  const go = el("button", { type: "button", class: "button main", onclick: read }, "Look inside");
  const pane = el("div", { class: "pane" }, asked, label, area, hint, el("div", { class: "controls" }, go));
  const card = el("div", { class: "card" }, modelChoice(models, state, modelInUse, chosen), pane, box.node);
  chosen();
  return {
    node: el("div", {}, card, view),
    focus: () => (asked.hidden ? area : question).focus(),
    shown: () => modelInUse(state.model.name),
  };

  /** Of models that can read, only masked language models score texts, and only some answer questions about them. */
  function chosen() {
    asked.hidden = !state.model.abilities.includes("extract");
    hint.hidden = !state.model.abilities.includes("score");
    clear();
  }

  function clear() {
    work.stop();
    box.clear();
    view.replaceChildren();
  }

  function read() {
    box.clear();
    const context = area.value.trim();
    const text = asked.hidden ? context : JSON.stringify({ question: question.value.trim(), context });
    if (!context || (!asked.hidden && !question.value.trim())) {
      clear();
      return;
    }
    const { name, source, target } = state.model;
    work.run(
      async (signal) => {
        const data = await ask("api/inspect", { model: name, text }, signal);
        view.replaceChildren(readerView(data, { source: source?.code ?? "", target: target?.code ?? "" }));
      },
      (error) => box.show(error, read),
    );
  }
}
