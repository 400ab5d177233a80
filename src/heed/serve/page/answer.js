// Panel for questions about a text: the answer is marked in it, and the next best answers are shown as bars.

import { ask } from "./api.js";
import { answerBar } from "./answers.js";
import { el } from "./dom.js";
import { markedText } from "./entities.js";
import { alertBox, latest, modelChoice, onControlEnter } from "./panel.js";

const MOST = 5; // answers that are shown
const NOTHING = "no answer in this text";

export function answerPanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("extract"));
  const state = { model: models[0] };
  const work = latest();
  const box = alertBox();
  const question = el("input", {
    id: "question",
    type: "text",
    dir: "auto",
    autocomplete: "off",
    onkeydown: (event) => event.key === "Enter" && !event.isComposing && find(),
  });
  const area = el("textarea", {
    id: "to-search",
    dir: "auto",
    placeholder: "The text that has the answer",
    onkeydown: onControlEnter(find),
  });
  const bars = el("div", { class: "answers", role: "status" });
  const output = el("div", { class: "marked answered", dir: "auto" });
  const go = el("button", { type: "button", class: "button main", onclick: find }, "Find the answer");
  const panes = el(
    "div",
    { class: "panes" },
    el(
      "div",
      { class: "pane" },
      el("label", { class: "field asked" }, el("span", {}, "Question"), question),
      el("label", { class: "hidden", for: "to-search" }, "Text"),
      area,
      el("div", { class: "controls" }, go),
    ),
    el("div", { class: "pane" }, bars, output),
  );
  const card = el("div", { class: "card" }, modelChoice(models, state, modelInUse, clear), panes, box.node);
  return { node: card, focus: () => question.focus(), shown: () => modelInUse(state.model.name) };

  function clear() {
    work.stop();
    box.clear();
    bars.replaceChildren();
    output.replaceChildren();
  }

  function find() {
    clear();
    const asked = { question: question.value.trim(), context: area.value };
    if (!asked.question || !asked.context.trim()) return;
    work.run(
      async (signal) => {
        const body = { model: state.model.name, inputs: [JSON.stringify(asked)], top: MOST };
        const { outputs } = await ask("api/predict", body, signal);
        show(asked.context, outputs[0]);
      },
      (error) => box.show(error, find),
    );
  }

  function show(context, answers) {
    const choices = answers.map((answer) => {
      const node = el("button", { type: "button", class: "answer choice", onclick: () => mark(answer, node) });
      return answerBar({ ...answer, text: answer.text || NOTHING }, node);
    });
    bars.replaceChildren(...choices);
    mark(answers[0], choices[0]);

    function mark(answer, chosen) {
      for (const each of choices) each.setAttribute("aria-pressed", each === chosen);
      const spans = answer.text ? [{ ...answer, type: "" }] : [];
      output.replaceChildren(...markedText(context, spans, [""]));
      output.querySelector("mark")?.scrollIntoView({ block: "nearest" });
    }
  }
}
