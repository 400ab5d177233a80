// Correction of a translation, which goes into the translation memory of the server.

import { ask } from "./api.js";
import { el } from "./dom.js";

const SHOWN = 60; // characters of the text in the label

/** A button and the form that it opens. `current()`: the answer and its text; `failed(error)` shows an error. */
export function correction(current, failed, saved) {
  let given = null;
  const area = el("textarea", { id: "correction", dir: "auto", spellcheck: "true", oninput: typed });
  const label = el("label", { for: "correction" });
  const save = el("button", { type: "button", class: "button main", onclick: send }, "Save");
  const cancel = el("button", { type: "button", class: "button", onclick: close }, "Cancel");
  const form = el("div", { class: "correction", hidden: true }, label, area, el("div", { class: "under" }, cancel, save));
  const button = el("button", { type: "button", class: "button", disabled: true, onclick: open }, "Correct");
  return {
    button,
    form,
    /** A new answer, or null for none. The form stays open for its own text while somebody edits it. */
    update(answer) {
      button.disabled = !answer;
      if (!isEdited()) close();
    },
  };

  function isEdited() {
    return !form.hidden && area.value !== given.translation;
  }

  function open() {
    if (!isEdited()) fill();
    form.hidden = false;
    area.focus();
  }

  function fill() {
    const { text, answer } = current();
    const begin = [...text].slice(0, SHOWN).join("");
    label.textContent = `Your translation of “\u2068${begin}${begin === text ? "" : "…"}\u2069”`;
    area.value = answer.text;
    area.lang = answer.target;
    given = { text, translation: area.value, source: answer.source, target: answer.target };
    typed();
  }

  function typed() {
    save.disabled = !area.value.trim();
  }

  function close() {
    form.hidden = true;
  }

  async function send() {
    const { text, source, target } = given;
    save.disabled = true;
    try {
      await ask("suggest", { q: text, s: area.value, source, target });
      close();
      saved();
    } catch (error) {
      failed(error);
    } finally {
      typed();
    }
  }
}
