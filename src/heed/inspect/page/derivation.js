// A translation that was derived: the steps in the order of the target, with the value of each feature.

import { el, scrollable } from "./dom.js";

const signedScore = (number) => number.toFixed(2).replace("-", "\u2212");

const SECOND_SCORE = "second score";
const DIFFERENT = "The translation above is not among these derivations. A glossary can lead to another one.";

/** The views of a DerivationInspection. `shown`: the translation that the page shows, if it shows one. */
export function derivationView({ source, weights, derivations }, shown = null) {
  const views = derivations.map((each, rank) => one(each, rank, weights));
  const isThere = shown === null || derivations.some(({ text }) => text === shown);
  const note = isThere ? null : el("p", { class: "note" }, DIFFERENT);
  return el("section", { class: "inspection derivations" }, el("p", { class: "caption", dir: "auto" }, source), note, ...views);
}

/** What a step wrote: others than those of words are the end of the sentence, and the score of the whole translation. */
function written({ source, target, features }) {
  return target || (source ? "(dropped)" : SECOND_SCORE in features ? "(whole translation)" : "(end)");
}

function one({ text, score, steps }, rank, weights) {
  const names = Object.keys(weights).filter((name) => steps.some((step) => name in step.features));
  const head = ["source", "target", "score", ...names].map((name) => el("th", { scope: "col" }, name));
  const rows = steps.map((step) =>
    el(
      "tr",
      {},
      el("td", { dir: "auto" }, step.source),
      el("td", { dir: "auto" }, written(step), step.note ? el("span", { class: "mark" }, ` ${step.note}`) : null),
      el("td", { class: "number" }, signedScore(step.score)),
      ...names.map((name) => el("td", { class: "number" }, name in step.features ? signedScore(step.features[name]) : "")),
    ),
  );
  const weighted = ["weight", "", ""].map((name) => el("td", {}, name));
  weighted.push(...names.map((name) => el("td", { class: "number" }, signedScore(weights[name]))));
  const table = el(
    "table",
    { class: "derivation" },
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...rows),
    el("tfoot", {}, el("tr", {}, ...weighted)),
  );
  return el(
    "details",
    { open: rank === 0 },
    el("summary", { dir: "auto" }, text, " ", el("span", { class: "number" }, `score ${signedScore(score)}`)),
    scrollable(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "steps" }, table)),
  );
}
