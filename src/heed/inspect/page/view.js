// All views of an inspection: the sentence, and tabs for attention, next words, alternatives and the beam.

import { alternativesView } from "./alternatives.js";
import { choicesView, leastSure } from "./choices.js";
import { el, hasModifier, scrollable } from "./dom.js";
import { attentionOf, heatMapView } from "./heat_map.js";
import { sentenceView } from "./sentence.js";
import { treeView } from "./tree.js";
import { layerChoices, matrixOf } from "./weights.js";

let count = 0;
let lastView = null; // the view that was opened last; the next inspection opens it again

/**
 * The views of `data`. `at`: index of the word to select. With a server: `chosen` is the text of the alternative shown,
 * `choose(text)` is called for another alternative, and `pick(prefix, position)` for another word at a position.
 */
export function inspectionView(data, languages, { chosen = null, choose = null, pick = null, at = null } = {}) {
  const first = data.attention[0];
  const state = {
    kind: first?.kind ?? null,
    layer: first ? layerChoices(first)[0][0] : null,
    head: "mean",
    numbers: false,
    row: null,
    column: null,
    chosen: at === null ? leastSure(data) : Math.min(at, data.target.length - 1),
  };
  let matrix = null;
  let key = null;
  const changed = () => paint();
  const sentence = sentenceView(data, languages, state, changed);
  const views = [
    ["Next word", choicesView(data, languages, state, pick)],
    ...(first ? [["Attention", heatMapView(data, languages, state, changed)]] : []),
    ...(data.alternatives.length > 1
      ? [["Alternatives", alternativesView(data, languages, chosen ?? data.alternatives[0].text, choose)]]
      : []),
    ...(data.tree ? [["Beam", treeView(data, languages)]] : []),
  ];
  if (first && data.task === "translation") views.unshift(...views.splice(1, 1));
  const tabs = tabView(
    views.map(([name, view]) => [name, view.node]),
    () => {
      lastView = tabs.shown();
      paint();
    },
    lastView,
  );

  function paint() {
    const now = [state.kind, state.layer, state.head].join();
    if (first && now !== key) matrix = matrixOf(attentionOf(data, state.kind), state.layer, state.head);
    key = now;
    node.classList.toggle("shows-choices", tabs.shown() === "Next word");
    sentence.paint(matrix);
    for (const [, view] of views) view.paint(matrix);
  }
  const lines = el(
    "div",
    { class: "sentence" },
    sentence.source,
    sentence.target,
    sentence.status,
    legend(data, Boolean(first)),
  );
  const node = el("div", { class: "inspection" }, lines, tabs.node);
  paint();
  return node;
}

function legend(data, hasAttention) {
  const parts = [
    data.task === "translation"
      ? "Underlined words were unlikely."
      : "The thicker the underline, the less likely the word.",
  ];
  if (hasAttention)
    parts.push("Point at a word, or move to it with the tab and arrow keys, to see what it attends to.");
  return el("p", { class: "legend quiet" }, parts.join(" "));
}

/** Tabs: arrow keys move between them. `shown()` is called after a change; `first`: name of the tab to open. */
export function tabView(panels, shown, first = null) {
  const prefix = `tabs${++count}`;
  const names = panels.map(([name], place) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `${prefix}-${place}`,
        "aria-controls": `${prefix}-panel-${place}`,
        onclick: () => {
          open(place);
          shown();
        },
      },
      name,
    ),
  );
  const bodies = panels.map(([, body], place) =>
    el(
      "div",
      {
        role: "tabpanel",
        id: `${prefix}-panel-${place}`,
        "aria-labelledby": `${prefix}-${place}`,
      },
      body,
    ),
  );
  function open(place) {
    names.forEach((name, other) => {
      name.setAttribute("aria-selected", other === place ? "true" : "false");
      name.tabIndex = other === place ? 0 : -1;
      bodies[other].hidden = other !== place;
    });
  }
  const list = el(
    "div",
    {
      role: "tablist",
      "aria-label": "views",
      onkeydown: (event) => {
        const here = names.indexOf(event.target);
        const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: names.length - 1 }[event.key];
        if (to === undefined || hasModifier(event)) return;
        event.preventDefault();
        const place = (to + names.length) % names.length;
        names[place].click();
        names[place].focus();
      },
    },
    ...names,
  );
  open(
    Math.max(
      0,
      panels.findIndex(([name]) => name === first),
    ),
  );
  return {
    node: el("div", { class: "tabs" }, scrollable(list), ...bodies),
    shown: () => panels[bodies.findIndex((body) => !body.hidden)][0],
  };
}
