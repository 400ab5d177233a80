// Panel for classifying a text: probabilities as bars, and the words and n-grams that the answer rests on.

import { ask } from "./api.js";
import { bar } from "./bars.js";
import { el, setNumber } from "./dom.js";
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
    const body = { model: state.model.name, inputs: [text.trim().replace(/\s*\n\s*/g, " ")], top: MOST, explain };
    work.run(
      async (signal) => {
        const answer = await ask("api/predict", body, signal);
        bars.replaceChildren(...answer.outputs[0].map((each) => bar(each)));
        basis.replaceChildren(...(answer.explanations ?? []).flatMap(explained));
      },
      (error) => box.show(error, classify),
    );
  }
}

/** The text with its words marked, and the n-grams for and against the answer. */
function explained({ answer, words, ngrams }) {
  const most = Math.max(1e-9, ...words.map(({ weight }) => Math.abs(weight)));
  const marked = words.flatMap(({ text, weight }) => [mark(text, weight, most), " "]);
  const parts = [
    el("h2", {}, `What speaks for “${answer}”`),
    el("p", { class: "marked", dir: "auto" }, ...marked),
    el(
      "p",
      { class: "quiet" },
      el("span", { class: "word for" }, "for"),
      " and ",
      el("span", { class: "word against" }, "against"),
      " this answer: the change of its log-odds if the word is left out.",
    ),
  ];
  if (ngrams.length) parts.push(el("h3", {}, "Strongest n-grams of the linear model"), ngramList(ngrams));
  return parts;
}

function mark(text, weight, most) {
  const node = el("span", { class: weight < 0 ? "word against" : "word for", title: signed(weight) }, text);
  setNumber(node, "strength", Math.abs(weight) / most);
  return node;
}

function ngramList(ngrams) {
  const most = Math.max(...ngrams.map(({ weight }) => Math.abs(weight)));
  const items = ngrams.map(({ text, weight }) =>
    el("li", {}, mark(text.replaceAll(" ", "␣"), weight, most), el("span", { class: "quiet" }, ` ${signed(weight)}`)),
  );
  return el("ul", { class: "ngrams", dir: "auto" }, ...items);
}

function signed(weight) {
  return `${weight < 0 ? "−" : "+"}${Math.abs(weight).toFixed(2)}`;
}
