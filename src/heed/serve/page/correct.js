// Correction of a translation, which goes into the translation memory of the server.

import { ask } from "./api.js";
import { el } from "./dom.js";

/** A button and the form that it opens. `current()`: the answer and its text; `failed(error)` shows an error. */
export function correction(current, failed, saved) {
  let given = null;
  const area = el("textarea", { id: "correction", dir: "auto", spellcheck: "true" });
  const label = el("label", { for: "correction" }, "Your translation");
  const save = el("button", { type: "button", class: "button main", onclick: send }, "Save");
  const cancel = el("button", { type: "button", class: "button", onclick: close }, "Cancel");
  const form = el("div", { class: "correction", hidden: true }, label, area, el("div", { class: "under" }, cancel, save));
  const button = el("button", { type: "button", class: "button", disabled: true, onclick: open }, "Correct");
  return {
    button,
    form,
    /** A new answer, or null for none. */
    update(answer) {
      button.disabled = !answer;
      close();
    },
  };

  function open() {
    given = current();
    area.value = given.answer.text;
    area.lang = given.answer.target;
    form.hidden = false;
    area.focus();
  }

  function close() {
    form.hidden = true;
  }

  async function send() {
    const { text, answer } = given;
    save.disabled = true;
    try {
      await ask("suggest", { q: text, s: area.value, source: answer.source, target: answer.target });
      close();
      saved();
    } catch (error) {
      failed(error);
    } finally {
      save.disabled = false;
    }
  }
}
