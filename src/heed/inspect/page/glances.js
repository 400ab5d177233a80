// A caption and, for each of its words, the image with the places that the model looked at.

import { el, percent, svg } from "./dom.js";

const DARKEST = 0.8; // opacity over a place with no attention

/** `caption` is a SeenCaption; `picture()` makes a new element with the image. */
export function captionView({ text, words, rows, columns, alternatives }, picture) {
  const others = alternatives.map((each) => el("li", { dir: "auto" }, each));
  return el(
    "section",
    { class: "inspection" },
    el("p", { class: "caption", dir: "auto" }, text || "(an empty caption)"),
    el("div", { class: "glances", role: "list" }, ...words.map((word) => glance(word, rows, columns, picture))),
    el("p", { class: "quiet" }, "Bright places had the most attention when the word was written; its probability is below."),
    others.length ? el("h2", {}, "Other captions") : null,
    others.length ? el("ol", { start: 2 }, ...others) : null,
  );
}

function glance({ text, probability, weights }, rows, columns, picture) {
  const most = Math.max(...weights);
  const shade = svg("svg", { viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  weights.forEach((weight, place) => {
    const opacity = (DARKEST * (1 - weight / most)).toFixed(3);
    const at = { x: place % columns, y: Math.floor(place / columns) };
    shade.append(svg("rect", { ...at, width: 1.01, height: 1.01, "fill-opacity": opacity }));
  });
  const where = whereabouts(weights.indexOf(most), rows, columns);
  return el(
    "figure",
    { class: "glance", role: "listitem", "aria-label": `${text || "end"}: looked most at the ${where}` },
    el("div", { class: "seen" }, picture(), shade),
    el("figcaption", {}, el("bdi", {}, text || "end"), " ", el("span", { class: "number" }, percent(probability))),
  );
}

function whereabouts(place, rows, columns) {
  const third = (at, size) => Math.min(2, Math.floor((3 * (at + 0.5)) / size));
  const down = ["top", "middle", "bottom"][third(Math.floor(place / columns), rows)];
  const across = ["left", "middle", "right"][third(place % columns, columns)];
  return down === across ? "middle" : `${down} ${across}`;
}
