// Panel for translating: the text, its translation as it grows, and the inspection of its sentences.

import { ask, follow } from "./api.js";
import { correction } from "./correct.js";
import { derivationView } from "./derivation.js";
import { directionView } from "./direction.js";
import { el, percent } from "./dom.js";
import { fileFields } from "./file.js";
import { matchesView } from "./matches.js";
import { optionFields } from "./options.js";
import { outputView } from "./output.js";
import { after, alertBox, insideView, latest, onControlEnter } from "./panel.js";
import { inspectionView } from "./view.js";

const PAUSE = 600; // milliseconds without a keystroke before the text is translated

export function translatePanel(served, modelInUse) {
  const { limits } = served;
  const state = { text: "", answer: null, sentence: 0, given: null, seen: null, at: null };
  let before = null; // the text before the last swap, and its translation, which took its place
  const work = latest();
  const soon = after(PAUSE, translate);
  const box = alertBox();
  const inside = insideView(look);
  const output = outputView(chooseSentence);
  const direction = directionView(served, directionChanged);
  const options = optionFields(limits, soon.start);
  const file = fileFields(served.files, () => direction.chosen, options.values);
  const area = el("textarea", {
    id: "source-text",
    dir: "auto",
    placeholder: "Type or paste text",
    spellcheck: "true",
    oninput: typed,
    onkeydown: onControlEnter(translate),
  });
  const live = el("p", { class: "hidden", role: "status" });
  const counted = el("span", { class: "quiet" });
  const facts = el("span", { class: "quiet", id: "facts" });
  const copy = el("button", { type: "button", class: "button", disabled: true, onclick: copyAll }, "Copy");
  const correct = correction(() => state, (error) => box.show(error), thank);
  const matches = matchesView(use, (error) => box.show(error));
  const go = el("button", { type: "button", class: "button main", onclick: translate }, "Translate");
  const label = el("label", { class: "hidden", for: "source-text" }, "Text to translate");
  const panes = el(
    "div",
    { class: "panes" },
    el("div", { class: "pane" }, label, area, el("div", { class: "under" }, counted, go)),
    el("div", { class: "pane" }, output.node, el("div", { class: "under" }, facts, ...buttons()), correct.form, matches.node),
  );
  const card = el("div", { class: "card" }, direction.node, panes, box.node, live, options.node, file.node);
  showDirection();
  return { node: el("div", {}, card, inside.node), focus: () => area.focus(), shown: showDirection };

  function buttons() {
    return served.suggestions ? [el("span", { class: "buttons" }, correct.button, copy)] : [copy];
  }

  function thank() {
    facts.textContent = live.textContent = "Saved. This text is translated like that from now on, unless it looks wrong or was decided otherwise.";
  }

  function showDirection() {
    const { from, to } = direction.chosen;
    area.lang = from === "auto" ? "" : from;
    output.node.lang = to;
    modelInUse(direction.modelName());
  }

  function directionChanged(swapped) {
    if (swapped) swapTexts();
    else before = null;
    showDirection();
    translate();
  }

  /** Exchange the text and its translation: the one that is shown, or the text from before the last swap. */
  function swapTexts() {
    const { answer, text } = state;
    const { from, to } = direction.chosen;
    const isShown = answer && text === area.value && answer.source === to && answer.target === from;
    const other = isShown ? answer.text : before?.translation === area.value ? before.text : null;
    show(null);
    before = other === null ? null : { text: area.value, translation: other };
    if (before) area.value = other;
  }

  function typed() {
    const length = [...area.value].length;
    const near = length > limits.characters / 2;
    counted.textContent = near ? `${inThousands(length)} of ${inThousands(limits.characters)} characters` : "";
    soon.start();
  }

  async function translate() {
    soon.cancel();
    box.clear();
    const text = area.value;
    const length = [...text].length;
    if (!text.trim() || length > limits.characters) {
      work.stop();
      show(null);
      if (text.trim()) box.show({ message: tooLong(length, limits.characters) });
      return;
    }
    output.node.classList.add("waiting");
    inside.node.inert = matches.node.inert = true; // they are about the text before
    facts.textContent = "Translating …";
    const began = performance.now();
    const { from, to, model } = direction.chosen;
    await work.run(
      async (signal) => {
        const parts = [];
        const body = { text, source: from, target: to, model, ...options.values() };
        const onPartial = (partial) => {
          parts[partial.sentence] = partial.text;
          output.partial(parts.filter(Boolean).join(" "));
        };
        show(await follow("api/translate", body, onPartial, signal), performance.now() - began, text);
      },
      (error) => {
        show(null);
        box.show(error, translate);
      },
    );
  }

  function show(answer, milliseconds = 0, text = "") {
    Object.assign(state, { text, answer, sentence: 0, given: null, seen: null, at: null });
    copy.disabled = !answer;
    correct.update(answer);
    output.show(answer);
    matches.clear();
    inside.clear();
    inside.node.inert = matches.node.inert = false;
    facts.textContent = live.textContent = "";
    if (!answer) return;
    output.mark(0);
    const { path, sentences } = answer;
    const parts = [...factsOf(answer), `${(milliseconds / 1000).toFixed(1)} s`];
    facts.replaceChildren(...parts.flatMap((part, place) => (place ? [" · ", part] : [part])));
    const number = `${sentences.length} ${sentences.length === 1 ? "sentence" : "sentences"}`;
    live.textContent = answer.from_memory ? "Translated by a person." : `Translated: ${number}.`;
    modelInUse(path.at(-1));
    if (sentences.length && path.length) {
      inside.update();
      lookUp();
    }
  }

  /** Ask for translations of sentences like the chosen one. */
  function lookUp() {
    const { answer, sentence } = state;
    if (served.suggestions && answer.path.length === 1)
      matches.lookUp(answer.sentences[sentence].source, answer.source, answer.target);
  }

  /** Facts about an answer, as texts and buttons. */
  function factsOf({ detected, path, sentences, from_memory: fromMemory }) {
    const best = sentences.map(({ hypotheses }) => hypotheses[0]);
    const sure = best.map(({ confidence }) => confidence).filter((value) => typeof value === "number");
    const isGuided = served.models.some(({ name, guided }) => guided && path.includes(name));
    const doubts = best.flatMap(({ flags }, place) => (flags.length ? [doubtButton(place, flags)] : []));
    return [
      detected ? `${direction.nameOf(detected.language)} (${Math.round(detected.confidence)}\u202f%)` : "",
      fromMemory ? "translated by a person" : "",
      isGuided ? "guided by similar translations" : "",
      path.length > 1 ? `via ${path.join(", ")}` : "",
      sure.length ? `confidence ${percent(Math.min(...sure))}` : "",
      ...doubts,
    ].filter(Boolean);
  }

  function doubtButton(place, flags) {
    const onclick = () => {
      chooseSentence(place);
      output.node.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest" });
      inside.reveal();
    };
    return el(
      "button",
      { type: "button", class: "doubt", onclick },
      `doubtful sentence ${place + 1}: ${flags.join(", ")}`,
    );
  }

  function chooseSentence(place) {
    Object.assign(state, { sentence: place, given: null, seen: null, at: null });
    output.mark(place);
    lookUp();
    inside.update();
  }

  /** Replace the sentence by the translation of a similar one. */
  function use(text) {
    if (modelOf(state.answer).abilities.includes("derive")) output.replace(state.sentence, text);
    else take(text);
    live.textContent = `Changed to: ${text}`;
  }

  /** The inspection of the sentence: of its best output, or of one that was chosen instead. */
  async function look(signal) {
    const { answer } = state;
    const sentence = answer.sentences[state.sentence];
    const { beam_size: beamSize, glossary, keep } = options.values();
    const model = modelOf(answer);
    const derives = model.abilities.includes("derive"); // its search does not take a given output
    const shown = state.given ?? (!derives && (glossary || keep) ? sentence.hypotheses[0].text : null);
    const body = { model: model.name, source: sentence.source, target: shown, beam_size: beamSize ?? null };
    body.target_language = answer.target;
    body.source_language = sourceOf(answer);
    const data = await ask("api/inspect", body, signal);
    if (derives) return derivationView(data, sentence.hypotheses[0].text);
    if (state.seen) data.alternatives = state.seen.alternatives;
    else state.seen = data;
    const chosen = state.given ?? data.alternatives[0]?.text;
    const languages = { source: sourceOf(answer), target: answer.target };
    return inspectionView(data, languages, { chosen, choose: take, pick: steer, at: state.at });
  }

  /** The model of the last step. */
  function modelOf(answer) {
    return served.models.find((each) => each.name === answer.path.at(-1));
  }

  /** The source language of that model, which may translate from several. */
  function sourceOf(answer) {
    if (answer.path.length === 1) return answer.source;
    return modelOf(answer).directions.find(({ target }) => target.code === answer.target).source.code;
  }

  /** Replace the sentence by another output. `at`: index of the word to inspect. */
  function take(text, at = null) {
    output.replace(state.sentence, text);
    output.mark(state.sentence);
    Object.assign(state, { given: text, at });
    inside.update();
  }

  /** Translate the sentence again with a prefix. `place`: index of its last word. */
  function steer(prefix, place) {
    const { answer, sentence, given } = state;
    const model = modelOf(answer);
    const text = answer.sentences[sentence].source;
    work.run(
      async (signal) => {
        const body = {
          text,
          source: sourceOf(answer),
          target: answer.target,
          model: model.name,
          prefix,
          ...options.values(),
        };
        const steered = await ask("api/translate", body, signal);
        const isCurrent = state.answer === answer && state.sentence === sentence && state.given === given;
        if (!isCurrent) return; // another sentence or output was chosen meanwhile, which this would overwrite
        live.textContent = `Changed to: ${steered.text}`;
        take(steered.sentences[0].hypotheses[0].text, place);
      },
      (error) => box.show(error),
    );
  }

  async function copyAll() {
    try {
      await navigator.clipboard.writeText(state.answer.text);
      live.textContent = copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(output.node);
      copy.textContent = "Selected";
    }
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  }
}

function tooLong(length, limit) {
  return `The text has ${inThousands(length)} characters; the limit is ${inThousands(limit)}.`;
}

function inThousands(number) {
  return number.toLocaleString("en");
}
