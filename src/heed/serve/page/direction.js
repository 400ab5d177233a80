// Selection of languages, and of a model if several translate between them.

import { el, select } from "./dom.js";

/** Selects for what a server offers. `changed(swapped)` is called after a change. */
export function directionView(served, changed) {
  const { languages } = served;
  const sources = languages.filter((each) => each.targets.length);
  const node = el("div", { class: "direction" });
  const chosen = { from: sources.length === 1 ? sources[0].code : "auto", to: "", model: null };
  const find = (code) => languages.find((each) => each.code === code);
  const nameOf = (code) => find(code)?.name ?? code;

  function targets() {
    const codes = chosen.from === "auto" ? sources.flatMap((each) => each.targets) : find(chosen.from).targets;
    return [...new Set(codes)];
  }

  function models() {
    const fits = ({ source, target }) =>
      target.code === chosen.to && (chosen.from === "auto" || source.code === chosen.from);
    return served.models.filter((each) => each.directions.some(fits));
  }

  function fill() {
    if (!targets().includes(chosen.to)) [chosen.to] = targets();
    const possible = models();
    const offered = chosen.from !== "auto" && possible.some((each) => each.name === chosen.model);
    if (!offered) chosen.model = null;
    const names = (codes) => codes.map((code) => [code, nameOf(code)]);
    const detect = sources.length > 1 ? [["auto", "Detect language"]] : [];
    const set = (name) => (value) => {
      chosen[name] = value || null;
      fill();
      changed(false);
    };
    const which = [["", "automatic"], ...possible.map((each) => [each.name, each.name])];
    node.replaceChildren(
      select("From", [...detect, ...names(sources.map((each) => each.code))], chosen.from, set("from")),
      swapButton(),
      select("To", names(targets()), chosen.to, set("to")),
      possible.length > 1 && chosen.from !== "auto" ? select("Model", which, chosen.model ?? "", set("model")) : "",
    );
  }

  function swapButton() {
    const name = "Swap the languages";
    return el(
      "button",
      {
        type: "button",
        class: "button icon",
        title: name,
        "aria-label": name,
        disabled: !find(chosen.to)?.targets.includes(chosen.from),
        onclick: () => {
          [chosen.from, chosen.to] = [chosen.to, chosen.from];
          fill();
          changed(true);
          node.querySelector(".icon").focus();
        },
      },
      "⇄",
    );
  }

  fill();
  return { node, chosen, nameOf, modelName: () => chosen.model ?? models()[0]?.name ?? null };
}
