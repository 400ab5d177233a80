// Options of a translation.

import { el } from "./dom.js";
import { alertBox } from "./panel.js";

function field(name, input, kind = "field") {
  return el("label", { class: kind }, el("span", {}, name), input);
}

function lines(input) {
  return input.value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** The term and its translation around the first tab of a line, or else its first equals sign; null without both. */
function termOf(line) {
  const separator = line.includes("\t") ? "\t" : "=";
  const [source, ...rest] = line.split(separator);
  const term = { source: source.trim(), target: rest.join(separator).trim() };
  return term.source && term.target ? term : null;
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
  const box = alertBox();
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
    box.node,
  );

  /** What is sent. A line of the glossary that is not understood is left out, which is said. */
  function values() {
    const read = lines(glossary).map((line) => [line, termOf(line)]);
    const terms = read.map(([, term]) => term).filter(Boolean);
    const unread = read.filter(([, term]) => !term).map(([line]) => `“${line}”`);
    const fault = `Not used in the glossary, as it is not like “dog = Hund”: ${unread.join(", ")}`;
    if (!unread.length) box.clear();
    else {
      node.open = true; // what is closed is neither seen nor read aloud
      if (box.node.textContent !== fault) box.show({ message: fault }); // screen readers read it each time
    }
    return {
      ...(beam.value ? { beam_size: Number(beam.value) } : {}),
      ...(lines(keep).length ? { keep: lines(keep) } : {}),
      ...(terms.length ? { glossary: terms } : {}),
    };
  }
  return { node, values };
}
