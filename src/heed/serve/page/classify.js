// Panel for classifying a text: probabilities as bars, and the words and n-grams that the answer rests on.

import { answerBar, explanationParts } from "./answers.js";
import { ask } from "./api.js";
import { el } from "./dom.js";
import { after, alertBox, latest, modelChoice, onControlEnter } from "./panel.js";

const PAUSE = 400; // milliseconds without a keystroke before the text is classified
const MOST = 10; // labels that are shown

export function classifyPanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("explain"));
  const state = { model: models[0] };
  const work = latest();
  const soon = after(PAUSE, classify);
  const box = alertBox();
  const area = el("textarea", {
    id: "to-classify",
    dir: "auto",
    placeholder: "Type or paste a text",
    spellcheck: "true",
    oninput: soon.start,
    onkeydown: onControlEnter(classify),
  });
  const bars = el("div", { class: "answers", role: "status" });
  const basis = el("div", { class: "basis" });
  const label = el("label", { class: "hidden", for: "to-classify" }, "Text to classify");
  const go = el("button", { type: "button", class: "button main", onclick: classify }, "Classify");
  const panes = el(
    "div",
    { class: "panes" },
    el("div", { class: "pane" }, label, area, el("div", { class: "under" }, el("span", {}), go)),
    el("div", { class: "pane" }, bars),
  );
  const card = el("div", { class: "card" }, modelChoice(models, state, modelInUse, classify), panes, box.node, basis);
  return { node: card, focus: () => area.focus(), shown: () => modelInUse(state.model.name) };

  function classify() {
    soon.cancel();
    box.clear();
    const text = area.value;
    if (!text.trim()) {
      work.stop();
      bars.replaceChildren();
      basis.replaceChildren();
      return;
    }
    const explain = state.model.abilities.includes("explain");
    const body = { model: state.model.name, inputs: [text.trim()], top: MOST, explain };
    work.run(
      async (signal) => {
        const answer = await ask("api/predict", body, signal);
        bars.replaceChildren(...answer.outputs[0].map((each) => answerBar(each)));
        basis.replaceChildren(...(answer.explanations ?? []).flatMap(explanationParts));
      },
      (error) => box.show(error, classify),
    );
  }
}
