// What else could have stood there? The likeliest tokens in the place of a word.

import { el, percent, pieceName, setNumber } from "./dom.js";
import { nameOf } from "./sentence.js";

/** One table: choices of a place, with the token that stands there marked. `pick` makes each of them a button. */
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
        isTaken ? el("span", { class: "mark" }, "stands here") : null,
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
          el("span", { class: "mark" }, "stands here"),
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

/** The words that could stand in the place of one, and its pieces. `pick(beginning, place)`: from another one on. */
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
      { end: "The end", next: "What comes next" }[word.kind] ??
        el("bdi", { lang: languages.target || null }, nameOf(word)),
    );
    const title = el(
      "p",
      { class: "lead" },
      name,
      word.prob === null ? ". " : ` had ${percent(word.prob)} in its place. `,
      pick
        ? "Choose a word or token to go on from it, or another word above to see its place."
        : "Choose another word above to see its place.",
    );
    const words = wordTable(
      data,
      word,
      languages.target,
      pick && ((choice) => pick(beginning(data, shown, 0) + choice.text, shown)),
    );
    const pieces = word.tokens.map((token, place) =>
      choiceTable(
        word.tokens.length === 1 ? "Likeliest tokens" : `Piece ${place + 1}: ${token.text ? pieceName(token) : "end"}`,
        token.choices,
        token.rank === null ? null : token,
        languages.target,
        pick && ((choice) => pick(beginning(data, shown, place) + choice.text, shown)),
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

/** The likeliest words in the place of one, where they were looked for. */
function wordTable(data, word, language, pick) {
  if (!word.choices.length) return null;
  if (word.kind === "next") return choiceTable("Likeliest words", word.choices, null, language, pick);
  const rank =
    word.choices.findIndex((choice) => (word.kind === "end" ? choice.end : choice.text.trim() === word.text.trim())) +
    1;
  const taken = { text: word.text, goes_on: false, prob: word.prob, rank: rank || Infinity };
  return choiceTable("Likeliest words, each with its end", word.choices, taken, language, pick);
}

/** The output before a piece of a word. */
function beginning(data, word, piece) {
  const before = data.target.slice(0, word).map((each) => (each.kind === "word" ? each.text : ""));
  return (
    before.join("") +
    data.target[word].tokens
      .slice(0, piece)
      .map((token) => token.text)
      .join("")
  );
}

/** The place that the model was least sure of. */
export function leastSure(data) {
  if (data.task === "language-model") return data.target.length - 1;
  return data.target.reduce(
    (least, word, place) => ((word.prob ?? 1) < (data.target[least].prob ?? 1) ? place : least),
    0,
  );
}
