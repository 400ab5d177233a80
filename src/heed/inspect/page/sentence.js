// Source and output as words, highlighted by attention and underlined by probability.

import { directionOf, doubt, el, percent, rove, setNumber, visible } from "./dom.js";
import { columnsOf } from "./weights.js";

const NAMES = { begin: "begin", end: "end", next: "next" };

/** The visible text of a word, or the name of an end. */
export function nameOf(word) {
  return NAMES[word.kind] ?? visible(word.text);
}

function label(word) {
  const prob = word.prob === null ? "" : `, ${percent(word.prob)}`;
  const name = { end: "end of the sentence", next: "next word" }[word.kind] ?? nameOf(word);
  return name + prob;
}

/** A line of words. `on`: the task, `look(index)` for the word pointed at (null: none), and `choose(index)`. */
function line(words, name, language, on) {
  const buttons = words.map((word, place) => {
    const button = el(
      "button",
      {
        type: "button",
        class: `word ${word.kind}`,
        "aria-label": label(word),
        title: word.prob === null ? null : percent(word.prob),
        onmouseenter: () => on.look(place),
        onmouseleave: () => on.look(null),
        onfocus: () => on.look(place),
        onblur: () => on.look(null),
        onclick: () => on.choose?.(place),
      },
      el("bdi", {}, nameOf(word)),
    );
    if (word.prob !== null) setNumber(button, "doubt", doubt(word.prob, on.task));
    if (place > 0 && word.kind === "word" && words[place - 1].kind !== "begin" && !/\s$/u.test(words[place - 1].text) && !/^\s/u.test(word.text))
      button.classList.add("joined");
    return button;
  });
  const node = el(
    "div",
    {
      class: "words",
      dir: directionOf(words.map((word) => word.text).join("")),
      lang: language || null,
      role: "group",
      "aria-label": name,
    },
    ...buttons.flatMap((button, place) => (words[place].text.includes("\n") ? [button, el("br")] : [button])),
  );
  rove(node, [buttons]);
  return { node, buttons };
}

/** Both sentences. `state` is shared with the other views, and `changed()` repaints them. */
export function sentenceView(data, languages, state, changed) {
  const translation = data.task === "translation";
  const look = (name) => (place) => {
    state[name] = place;
    changed();
  };
  const target = line(data.target, translation ? "translation" : "text", languages.target, {
    task: data.task,
    look: look("row"),
    choose: (place) => {
      state.chosen = place;
      changed();
    },
  });
  const source = translation
    ? line(data.source, "source", languages.source, { task: data.task, look: look("column") })
    : null;
  const begin = el("span", { class: "word begin", hidden: true }, "begin");
  target.node.prepend(begin);
  const status = el("p", { class: "status quiet" });

  function paint(matrix) {
    const own = state.kind === "self";
    begin.hidden = !own;
    const others = state.kind === "text" ? target.buttons : (source?.buttons ?? []);
    const columns = own ? [begin, ...target.buttons.slice(0, -1)] : others;
    const { row, column } = state;
    const lit = (node, weight) => {
      setNumber(node, "lit-share", Math.sqrt(weight));
      node.classList.toggle("lit", weight > 0.02);
    };
    for (const node of [begin, ...target.buttons, ...(source?.buttons ?? [])]) lit(node, 0);
    if (matrix && row !== null) columns.forEach((node, c) => lit(node, matrix[row][c]));
    else if (matrix && column !== null) target.buttons.forEach((node, r) => lit(node, matrix[r][column]));
    target.buttons.forEach((node, place) => {
      node.classList.toggle("at", place === row);
      node.setAttribute("aria-pressed", place === state.chosen ? "true" : "false");
    });
    source?.buttons.forEach((node, place) => node.classList.toggle("at", place === column && row === null));
    status.textContent = sentenceStatus(data, state, matrix);
  }
  return { source: source?.node ?? null, target: target.node, status, paint };
}

function quoted(word) {
  return word.kind === "word" ? `“\u2068${nameOf(word)}\u2069”` : nameOf(word);
}

/** Describes the highlighted words. */
export function sentenceStatus(data, state, matrix) {
  const { row, column } = state;
  const strongest = (pairs) =>
    pairs
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3)
      .filter(([, weight]) => weight >= 0.02)
      .map(([word, weight]) => `${quoted(word)} ${percent(weight)}`)
      .join(" · ");
  if (row !== null) {
    const word = data.target[row];
    const prob = word.prob === null ? "" : ` (probability ${percent(word.prob)})`;
    if (!matrix) return quoted(word) + prob;
    const attended = strongest(columnsOf(data, state.kind).map((other, c) => [other, matrix[row][c]]));
    return `${quoted(word)}${prob} attends to: ${attended || "no word in particular"}`;
  }
  if (column !== null && matrix) {
    const attending = strongest(data.target.map((other, r) => [other, matrix[r][column]]));
    return `${quoted(columnsOf(data, state.kind)[column])} is attended to by: ${attending || "no word in particular"}`;
  }
  return "";
}
