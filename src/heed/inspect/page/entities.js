// A tagged text: entities marked in it, or a tag below each word.

import { el, percent, setNumber } from "./dom.js";

const GOLDEN = 137.5; // degrees between the hues of two types, so that neighbours differ

/** The nodes of a text with its entities marked; those without a type are only marked. */
export function markedText(text, entities, types) {
  const letters = Array.from(text); // places count characters, not UTF-16 units
  const nodes = [];
  let done = 0;
  for (const { start, end, type, probability } of entities) {
    nodes.push(letters.slice(done, start).join(""));
    const label = type ? el("span", { class: "type" }, type) : null;
    const title = `${type} ${percent(probability)}`.trim();
    const mark = el("mark", { class: "entity", title }, letters.slice(start, end).join(""), label);
    setNumber(mark, "hue", (types.indexOf(type) * GOLDEN) % 360);
    setNumber(mark, "sure", probability);
    nodes.push(mark);
    done = end;
  }
  nodes.push(letters.slice(done).join(""));
  return nodes;
}

/** The nodes of words with their tags. */
export function taggedWords(tokens, tags) {
  return tokens.flatMap((token, index) => [el("ruby", { class: "tagged" }, token, el("rt", {}, tags[index])), " "]);
}

/** The types of all entities, in the order in which they first occur. */
export function typesOf(answers) {
  return [...new Set(answers.flatMap((answer) => answer.entities.map(({ type }) => type)))];
}
