// Selection of languages, and of a model if several translate between them.

import { el, select, setOptions } from "./dom.js";

/** Selects for what a server offers. `changed(swapped)` is called after a change. */
export function directionView(served, changed) {
  const { languages } = served;
  const sources = languages.filter((each) => each.targets.length);
  const [from, to, model] = ["From", "To", "Model"].map((name) => select(name, [], null, set(name.toLowerCase())));
  const name = "Swap the languages";
  const attributes = { type: "button", class: "button icon", title: name, "aria-label": name, onclick: swapped };
  const swap = el("button", attributes, "⇄");
  const node = el("div", { class: "direction" }, from, swap, to, model);
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
    const detect = sources.length > 1 ? [["auto", "Detect language"]] : [];
    setOptions(from, [...detect, ...names(sources.map((each) => each.code))], chosen.from);
    setOptions(to, names(targets()), chosen.to);
    setOptions(model, [["", "automatic"], ...possible.map(({ name }) => [name, name])], chosen.model ?? "");
    model.hidden = possible.length < 2 || chosen.from === "auto";
    swap.disabled = !find(chosen.to)?.targets.includes(chosen.from);
  }

  function names(codes) {
    return codes.map((code) => [code, nameOf(code)]);
  }

  function set(name) {
    return (value) => {
      chosen[name] = value || null;
      fill();
      changed(false);
    };
  }

  function swapped() {
    [chosen.from, chosen.to] = [chosen.to, chosen.from];
    fill();
    changed(true);
  }

  fill();
  return { node, chosen, nameOf, modelName: () => chosen.model ?? models()[0]?.name ?? null };
}
