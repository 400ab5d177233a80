// The page of one inspection. Its data is in the element `data` of the file.

import { el } from "./dom.js";
import { derivationView } from "./derivation.js";
import { captionView } from "./glances.js";
import { readerView } from "./reader.js";
import { inspectionView } from "./view.js";

const { model, inspection, made_by: madeBy } = JSON.parse(document.getElementById("data").textContent);
const TITLES = { translation: "Inside a translation", derivation: "Inside a translation", image: "Inside a caption" };
const { source, target } = model.languages;
const direction = source && target ? `${source} → ${target}` : target;
document
  .querySelector("header")
  .append(
    el("h1", {}, TITLES[inspection.task] ?? "Inside a text"),
    el(
      "p",
      { class: "quiet" },
      el("bdi", {}, model.name),
      direction ? ` · ${direction}` : "",
      ` · ${model.description} · ${madeBy}`,
    ),
  );
const views = {
  image: () => captionView(inspection.caption, () => el("img", { src: inspection.image, alt: "" })),
  derivation: () => derivationView(inspection),
  reader: () => readerView(inspection, model.languages),
};
const warnings = inspection.task in views ? [] : [
  ...inspection.flags.map((flag) => `The best output failed an output check: ${flag}.`),
  ...(inspection.finished ? [] : ["The output was cut off at its maximum length."]),
  ...(inspection.confidence === null
    ? []
    : [`Confidence in the output: ${Math.round(inspection.confidence * 100)}\u202f%.`]),
];
document
  .querySelector("main")
  .append(
    ...warnings.map((text) => el("p", { class: "note" }, text)),
    (views[inspection.task] ?? (() => inspectionView(inspection, model.languages)))(),
  );
