// Options of a translation.

import { el } from "./dom.js";

function field(name, input, kind = "field") {
  return el("label", { class: kind }, el("span", {}, name), input);
}

function lines(input) {
  return input.value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** Fields, and their part of a request, without empty ones. */
export function optionFields(limits, changed) {
  const beam = el("input", {
    type: "number",
    min: 1,
    max: limits.beam_size,
    placeholder: "default",
    oninput: changed,
  });
  const keep = el("textarea", { placeholder: "ACME", oninput: changed, dir: "auto" });
  const glossary = el("textarea", { placeholder: "dog = Hund", oninput: changed, dir: "auto" });
  const node = el(
    "details",
    { class: "options" },
    el("summary", {}, "Options"),
    el(
      "div",
      { class: "controls" },
      field("Beam size", beam, "field small"),
      field("Do not translate (one per line)", keep),
      field("Glossary (source = target, one per line)", glossary),
    ),
  );

  function values() {
    const pairs = lines(glossary).map((line) => line.split("=").map((part) => part.trim()));
    const terms = pairs.filter((pair) => pair.length === 2 && pair[0] && pair[1]);
    return {
      ...(beam.value ? { beam_size: Number(beam.value) } : {}),
      ...(lines(keep).length ? { keep: lines(keep) } : {}),
      ...(terms.length ? { glossary: terms.map(([source, target]) => ({ source, target })) } : {}),
    };
  }
  return { node, values };
}
