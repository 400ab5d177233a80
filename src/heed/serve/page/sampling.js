// Options of sampling.

import { el } from "./dom.js";

/**
 * Fields, and their part of a request.
 * `setDefaults` fills in the defaults of a model.
 */
export function samplingFields(limits) {
  const inputs = {
    temperature: number({ min: 0.05, max: 2, step: 0.05, value: 1 }),
    top_k: number({ min: 0, step: 1, value: 0 }),
    top_p: number({ min: 0.05, max: 1, step: 0.05, value: 1 }),
    max_tokens: number({ min: 1, max: limits.max_tokens, step: 1, value: Math.min(64, limits.max_tokens) }),
    samples: number({ min: 1, max: limits.nbest, step: 1, value: 1 }),
    seed: number({ min: 0, step: 1, placeholder: "random" }),
  };
  const names = {
    temperature: "Temperature",
    top_k: "Top k (0: all)",
    top_p: "Top p",
    max_tokens: "Max tokens",
    samples: "Samples",
    seed: "Seed",
  };
  const labels = Object.entries(inputs).map(([key, input]) =>
    el("label", { class: "field" }, el("span", {}, names[key]), input),
  );
  const isGiven = ([, input]) => input.value !== "";
  const entry = ([key, input]) => [key, Number(input.value)];
  const values = () => ({ ...Object.fromEntries(Object.entries(inputs).filter(isGiven).map(entry)), stop: [] });
  const setDefaults = (drawing) =>
    Object.entries(drawing).forEach(([key, value]) => (inputs[key].value = Math.min(value, inputs[key].max || value)));
  return { node: el("div", { class: "controls" }, ...labels), values, setDefaults };
}

function number(attributes) {
  return el("input", { type: "number", ...attributes });
}
