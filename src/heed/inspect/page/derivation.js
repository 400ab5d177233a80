// A translation that was derived: the steps in the order of the target, with the value of each feature.

import { el } from "./dom.js";

const signedScore = (number) => number.toFixed(2).replace("-", "\u2212");

/** `inspection` is a DerivationInspection. */
export function derivationView({ source, weights, derivations }) {
  const views = derivations.map((each, rank) => one(each, rank, weights));
  return el("section", { class: "inspection" }, el("p", { class: "caption", dir: "auto" }, source), ...views);
}

function one({ text, score, steps }, rank, weights) {
  const names = Object.keys(weights).filter((name) => steps.some((step) => name in step.features));
  const head = ["source", "target", "score", ...names].map((name) => el("th", { scope: "col" }, name));
  const rows = steps.map((step) =>
    el(
      "tr",
      {},
      el("td", { dir: "auto" }, step.source),
      el("td", { dir: "auto" }, step.target || "(end)", step.note ? el("span", { class: "mark" }, ` ${step.note}`) : null),
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
    el("div", { class: "wide" }, table),
  );
}
