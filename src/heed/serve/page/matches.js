// Translations by people of sentences like the one that is looked at.

import { ask } from "./api.js";
import { el, percent } from "./dom.js";
import { latest } from "./panel.js";

const TAGS = { both: "span", memory: "del", text: "ins" };
const SAID = { del: "only in the memory: ", ins: "only in your text: " };

/** A list of them. `use(text)` takes one of the translations; `failed(error)` shows an error. */
export function matchesView(use, failed) {
  const work = latest();
  const list = el("ul", { class: "matches" });
  const node = el("section", { class: "before", hidden: true }, el("h2", {}, "Translated before"), list);
  return {
    node,
    clear() {
      work.stop();
      show([]);
    },
    /** Show the matches of a sentence. */
    lookUp(text, source, target) {
      show([]);
      const asked = async (signal) => show((await ask("api/matches", { text, source, target }, signal)).matches);
      work.run(asked, failed);
    },
  };

  function show(matches) {
    node.hidden = !matches.length;
    list.replaceChildren(...matches.map(item));
  }

  function item({ target, similarity, pieces }) {
    const take = el("button", { type: "button", class: "button", onclick: () => use(target) }, "Use");
    const source = el("span", { class: "quiet", dir: "auto" }, `${percent(similarity)} `, ...pieces.map(piece));
    return el("li", {}, el("div", {}, source, el("div", { dir: "auto" }, target)), take);
  }

  function piece({ text, found_in: place }) {
    const tag = TAGS[place];
    return el(tag, {}, ...(SAID[tag] ? [el("span", { class: "hidden" }, SAID[tag])] : []), text);
  }
}
