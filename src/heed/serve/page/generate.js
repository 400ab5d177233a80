// Panel for generating text: continuations of a prompt, likely next words, and probabilities.

import { ask, follow } from "./api.js";
import { doubt, el, percent, setNumber } from "./dom.js";
import { nextView } from "./next.js";
import { after, alertBox, insideView, latest, modelChoice, onControlEnter } from "./panel.js";
import { samplingFields } from "./sampling.js";
import { inspectionView } from "./view.js";

const PAUSE = 400; // milliseconds without a keystroke before the next words are requested

export function generatePanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("generate"));
  const state = { model: models[0], inspected: "" };
  const work = latest();
  const soon = after(PAUSE, refreshNext);
  const box = alertBox();
  const inside = insideView(look);
  const next = nextView(continueFrom);
  const sampling = samplingFields(served.limits);
  const area = el("textarea", {
    id: "prompt",
    dir: "auto",
    placeholder: "Start a text, or leave this empty",
    oninput: typed,
    onkeydown: onControlEnter(generate),
  });
  const facts = el("p", { class: "quiet", role: "status" });
  const list = el("ol", { class: "continuations" });
  const go = button("Write", generate, "button main");
  const halt = button("Stop", stopped);
  const buttons = el(
    "div",
    { class: "controls" },
    go,
    halt,
    button("Inspect this text", () => lookAt(area.value)),
  );
  const label = el("label", { class: "hidden", for: "prompt" }, "Prompt");
  const panes = el(
    "div",
    { class: "panes" },
    el("div", { class: "pane" }, label, area, sampling.node, buttons),
    el("div", { class: "pane" }, next.node),
  );
  const card = el("div", { class: "card" }, modelChoice(models, state, modelInUse, modelChosen), panes, box.node, facts, list);
  halt.disabled = true;
  modelChosen();
  return {
    node: el("div", {}, card, inside.node),
    focus: () => area.focus(),
    shown: () => modelInUse(state.model.name),
  };

  function modelChosen() {
    sampling.setDefaults(state.model.drawing);
    area.lang = state.model.target?.code ?? "";
    refreshNext();
  }

  /** The list of next words is updated after a pause, and disabled until then. */
  function typed() {
    next.wait();
    soon.start();
  }

  function refreshNext() {
    soon.cancel();
    next.refresh(state.model, area.value);
  }

  function continueFrom(text) {
    area.value = text;
    area.focus();
    refreshNext();
  }

  async function generate() {
    refreshNext();
    box.clear();
    list.replaceChildren();
    halt.disabled = false;
    facts.textContent = "Writing …";
    const prompt = area.value;
    const body = { model: state.model.name, prompt, pieces: true, ...sampling.values() };
    const texts = [];
    const done = await work.run(
      async (signal) => {
        const onPiece = ({ index, text }) => {
          texts[index] = (texts[index] ?? "") + text;
          fill(index, prompt, [texts[index]]);
        };
        const answer = await follow("api/generate", body, onPiece, signal);
        answer.continuations.forEach((each, index) => finish(index, prompt, each));
        facts.textContent = `Seed ${answer.seed}`;
      },
      (error) => {
        facts.textContent = "";
        box.show(error, generate);
      },
    );
    if (done) halt.disabled = true;
  }

  /** Show the parts of a continuation after its prompt. */
  function fill(index, prompt, parts) {
    while (list.children.length <= index) {
      const text = el("p", { class: "continuation", dir: "auto", lang: state.model.target?.code || null });
      list.append(el("li", {}, text));
    }
    const text = list.children[index].firstElementChild;
    text.replaceChildren(el("span", { class: "prompt" }, prompt), ...parts);
    return text;
  }

  /** A complete continuation, with its buttons. */
  function finish(index, prompt, continuation) {
    const { text, tokens, log_prob: total, finished } = continuation;
    const each = percent(Math.exp(total / Math.max(1, tokens.length)));
    const summary = `${tokens.length} tokens · ${each} per token · ${finished ? "finished" : "cut off"}`;
    const controls = [
      el("span", { class: "quiet" }, summary),
      button("Continue from here", () => continueFrom(prompt + text)),
      button("Inspect", () => lookAt(prompt + text)),
    ];
    fill(index, prompt, shaded(continuation)).after(el("div", { class: "controls" }, ...controls));
  }

  function stopped() {
    work.stop();
    halt.disabled = true;
    facts.textContent = "Stopped.";
    go.focus();
  }

  function lookAt(text) {
    state.inspected = text;
    if (text.trim()) inside.update();
    else inside.clear();
  }

  async function look(signal) {
    const data = await ask("api/inspect", { model: state.model.name, text: state.inspected }, signal);
    return inspectionView(data, { source: null, target: state.model.target?.code });
  }
}

function button(name, onclick, kind = "button") {
  return el("button", { type: "button", class: kind, onclick }, name);
}

/** The tokens of a continuation, the unlikely ones underlined. */
function shaded({ text, tokens }) {
  const joined = tokens.map((token) => token.text).join("");
  const words = joined.trimEnd() === text.trim(); // each ends with a space, while the text begins with one
  if (joined !== text && !words) return [text]; // a token may be half of a character
  const lead = joined === text ? "" : text.slice(0, text.length - text.trimStart().length);
  const pieces = tokens.map((token) => {
    const prob = Math.exp(token.log_prob);
    const piece = el("span", { class: "piece-of", title: percent(prob) }, token.text);
    setNumber(piece, "doubt", doubt(prob, "language-model"));
    return piece;
  });
  return [lead, ...pieces];
}
