// Translations by people of sentences like the one that is looked at.

import { el, percent } from "./dom.js";

const TAGS = { both: "span", memory: "del", text: "ins" };
const SAID = { del: "only in the memory: ", ins: "only in your text: " };

/** A list of them. `use(text)` takes one of the translations. */
export function matchesView(use) {
  const list = el("ul", { class: "matches" });
  const node = el("section", { class: "before", hidden: true }, el("h2", {}, "Translated before"), list);
  return {
    node,
    /** The matches of a sentence; none hides the list. */
    show(matches) {
      node.hidden = !matches.length;
      list.replaceChildren(...matches.map(item));
    },
  };

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
