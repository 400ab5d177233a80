// Panel for taggers: the entities of a text, or the tag of each of its words.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { markedText, taggedWords, typesOf } from "./entities.js";
import { alertBox, latest, modelChoice, onControlEnter } from "./panel.js";

const MOST = 128; // lines of a request

export function tagPanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("annotate"));
  const state = { model: models[0] };
  const work = latest();
  const box = alertBox();
  const area = el("textarea", {
    id: "to-tag",
    dir: "auto",
    placeholder: "Sentences, one on each line",
    onkeydown: onControlEnter(tag),
  });
  const facts = el("p", { class: "quiet", role: "status" });
  const output = el("div", { class: "tagging", dir: "auto" });
  const go = el("button", { type: "button", class: "button main", onclick: tag }, "Tag");
  const label = el("label", { class: "hidden", for: "to-tag" }, "Text");
  const panes = el(
    "div",
    { class: "panes" },
    el("div", { class: "pane" }, label, area, el("div", { class: "controls" }, go)),
    el("div", { class: "pane" }, output),
  );
  return {
    node: el("div", {}, el("div", { class: "card" }, modelChoice(models, state, modelInUse, clear), panes, box.node, facts)),
    focus: () => area.focus(),
    shown: () => modelInUse(state.model.name),
  };

  function clear() {
    work.stop();
    box.clear();
    output.replaceChildren();
    facts.textContent = "";
  }

  async function tag() {
    clear();
    const lines = area.value.split("\n").filter((line) => line.trim());
    if (!lines.length) return;
    facts.textContent = "Tagging …";
    await work.run(
      async (signal) => {
        const body = { model: state.model.name, inputs: lines.slice(0, MOST) };
        const { outputs } = await ask("api/predict", body, signal);
        show(
          lines,
          outputs.map(([best]) => best),
        );
      },
      (error) => {
        facts.textContent = "";
        box.show(error, tag);
      },
    );
  }

  function show(lines, answers) {
    const types = typesOf(answers);
    const paragraphs = answers.map((answer, index) => {
      const tags = answer.text.split(" ");
      const isPlain = !answer.entities.length && tags.some((each) => each && each !== "O");
      const nodes = isPlain
        ? taggedWords(answer.tokens, tags)
        : markedText(lines[index], answer.entities, types);
      return el("p", {}, ...nodes);
    });
    output.replaceChildren(...paragraphs);
    const number = answers.reduce((sum, { entities }) => sum + entities.length, 0);
    const left = lines.length > MOST ? ` · the first ${MOST} of ${lines.length} lines` : "";
    facts.textContent = `${number} ${number === 1 ? "entity" : "entities"}${left}`;
    if (!number && answers.some((answer) => answer.text.split(" ").some((each) => each !== "O")))
      facts.textContent = `${answers.reduce((sum, { tokens }) => sum + tokens.length, 0)} words${left}`;
  }
}
