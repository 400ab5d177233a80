// Likely words and tokens at a position.

import { el, percent, pieceName, setNumber } from "./dom.js";
import { nameOf } from "./sentence.js";

/** A table of choices. `taken`: the one in the text, or null. `pick(choice)`: makes each of them a button. */
export function choiceTable(name, choices, taken, language, pick) {
  const rows = choices.map((choice, place) => {
    const text = choice.end ? "end" : pieceName(choice);
    const isTaken = taken !== null && taken.rank === place + 1;
    const shown = el("bdi", { class: choice.end ? "piece end" : "piece", lang: language || null }, text);
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    setNumber(bar, "share", choice.prob);
    return el(
      "tr",
      { class: isTaken ? "taken" : null },
      el("td", { class: "rank" }, String(place + 1)),
      el(
        "th",
        { scope: "row" },
        pick && !choice.end
          ? el("button", { type: "button", class: "pick", onclick: () => pick(choice) }, shown)
          : shown,
        isTaken ? el("span", { class: "mark" }, "in the text") : null,
      ),
      el("td", { class: "share" }, bar, el("span", { class: "number" }, percent(choice.prob))),
    );
  });
  if (taken !== null && taken.rank > choices.length) {
    rows.push(
      el(
        "tr",
        { class: "taken" },
        el("td", { class: "rank" }, Number.isFinite(taken.rank) ? String(taken.rank) : ""),
        el(
          "th",
          { scope: "row" },
          el("bdi", { class: "piece", lang: language || null }, taken.text ? pieceName(taken) : "end"),
          el("span", { class: "mark" }, "in the text"),
        ),
        el("td", { class: "share" }, el("span", { class: "number" }, percent(taken.prob))),
      ),
    );
  }
  const head = el(
    "tr",
    {},
    el("th", { scope: "col" }, "rank"),
    el("th", { scope: "col" }, "token"),
    el("th", { scope: "col" }, "probability"),
  );
  return el("table", { class: "choices" }, el("caption", {}, name), el("thead", {}, head), el("tbody", {}, ...rows));
}

/** Likely words at the position of a word, and likely tokens. `pick(prefix, position)` continues from another one. */
export function choicesView(data, languages, state, pick = null) {
  const node = el("div", {});
  let shown = -1,
    open = false;
  function paint() {
    if (state.chosen === shown) return;
    shown = state.chosen;
    const word = data.target[shown];
    const name = el(
      "strong",
      {},
      { end: "The end", next: "The next word" }[word.kind] ??
        el("bdi", { lang: languages.target || null }, nameOf(word)),
    );
    const title = el(
      "p",
      { class: "lead" },
      name,
      word.prob === null ? ". " : ` has probability ${percent(word.prob)}. `,
      pick
        ? "Choose a word or token to continue from it, or choose another word above."
        : "Choose another word above to see what else was likely there.",
    );
    const words = wordTable(
      data,
      word,
      languages.target,
      pick && ((choice) => pick(prefixOf(data, shown, 0) + choice.text, shown)),
    );
    const pieces = word.tokens.map((token, place) =>
      choiceTable(
        word.tokens.length === 1 ? "Likeliest tokens" : `Token ${place + 1}: ${token.text ? pieceName(token) : "end"}`,
        token.choices,
        token.rank === null ? null : token,
        languages.target,
        pick && ((choice) => pick(prefixOf(data, shown, place) + choice.text, shown)),
      ),
    );
    const tables = el("div", { class: "tables" }, ...pieces);
    node.replaceChildren(
      title,
      ...(words
        ? [words, el("details", { class: "pieces", open }, el("summary", {}, "Token by token"), tables)]
        : [tables]),
    );
    node.querySelector("details")?.addEventListener("toggle", (event) => {
      open = event.target.open;
    });
  }
  return { node, paint };
}

/** The likeliest words at the position of a word; null if there are none in the data. */
function wordTable(data, word, language, pick) {
  if (!word.choices.length) return null;
  if (word.kind === "next") return choiceTable("Likeliest words", word.choices, null, language, pick);
  const rank =
    word.choices.findIndex((choice) => (word.kind === "end" ? choice.end : choice.text.trim() === word.text.trim())) +
    1;
  const taken = { text: word.text, goes_on: false, prob: word.prob, rank: rank || Infinity };
  return choiceTable("Likeliest words", word.choices, taken, language, pick);
}

/** The output before a token of a word. */
function prefixOf(data, word, token) {
  const before = data.target.slice(0, word).map((each) => (each.kind === "word" ? each.text : ""));
  return (
    before.join("") +
    data.target[word].tokens
      .slice(0, token)
      .map(({ text }) => text)
      .join("")
  );
}

/** The position of the least likely word; in a text of a language model, its end. */
export function leastSure(data) {
  if (data.task === "language-model") return data.target.length - 1;
  return data.target.reduce(
    (least, word, place) => ((word.prob ?? 1) < (data.target[least].prob ?? 1) ? place : least),
    0,
  );
}
