// Attention as a heat map, with a thumbnail of every head.

import { checkbox, el, percent, rove, scrollable, select, setNumber, setOptions } from "./dom.js";
import { nameOf } from "./sentence.js";
import { columnsOf, headChoices, layerChoices, matrixOf } from "./weights.js";

const KINDS = { source: "to the source", self: "to earlier words", text: "between words" };

/** Controls, the table, and the thumbnails of all heads. */
export function heatMapView(data, languages, state, changed) {
  const kinds = data.attention.map(({ kind }) => [kind, KINDS[kind]]);
  const layer = select("Layer", [], null, set("layer"));
  const head = select("Head", [], null, set("head"));
  const controls = el(
    "div",
    { class: "controls" },
    kinds.length > 1 ? select("Attention", kinds, state.kind, setKind) : null,
    layer,
    head,
    checkbox("numbers", state.numbers, set("numbers")),
  );
  const frame = scrollable(el("div", { class: "frame" }));
  const heads = el(
    "details",
    { class: "heads", open: matchMedia("(min-width: 64rem)").matches },
    el("summary", {}, "All layers and heads"),
  );
  const node = el("div", {}, controls, el("div", { class: "map" }, frame, heads));
  let cells = [];
  let places = { rows: [], columns: [] };
  let shown = null;

  function set(name) {
    return (value) => {
      state[name] = value;
      changed();
    };
  }

  function setKind(kind) {
    const [[layer]] = layerChoices(attentionOf(data, kind));
    Object.assign(state, { kind, layer, head: "mean", row: null, column: null });
    changed();
  }

  function fillControls() {
    const attention = attentionOf(data, state.kind);
    setOptions(layer, layerChoices(attention), state.layer);
    setOptions(head, headChoices(attention), state.head);
  }

  function fillTable(matrix) {
    const columns = columnsOf(data, state.kind);
    places = placesOf(data, columns, matrix);
    cells = places.rows.map((r) =>
      places.columns.map((c) => {
        const cell = el(
          "td",
          {
            role: "gridcell",
            "aria-label": `${nameOf(data.target[r])} attends to ${nameOf(columns[c])}: ${percent(matrix[r][c])}`,
            onmouseenter: () => at(r, c),
            onfocus: () => at(r, c),
            onmouseleave: () => at(null, null),
            onblur: () => at(null, null),
          },
          el("span", {}, String(Math.round(matrix[r][c] * 100))),
        );
        setNumber(cell, "shade", matrix[r][c] ** 0.6);
        cell.classList.toggle("none", matrix[r][c] < 0.005);
        return cell;
      }),
    );
    const heading = el(
      "tr",
      { role: "row" },
      el("td", { role: "presentation" }),
      ...places.columns.map((c) =>
        el(
          "th",
          {
            role: "columnheader",
            scope: "col",
            lang: (state.kind === "source" ? languages.source : languages.target) || null,
          },
          el("bdi", {}, nameOf(columns[c])),
        ),
      ),
    );
    const named = { role: "rowheader", scope: "row", lang: languages.target || null };
    const rows = places.rows.map((r, line) =>
      el("tr", { role: "row" }, el("th", named, el("bdi", {}, nameOf(data.target[r]))), ...cells[line]),
    );
    const table = el(
      "table",
      {
        class: "heat",
        role: "grid",
        "aria-label": `Attention ${KINDS[state.kind]}: a row for each output word, a column for each attended word`,
      },
      el("thead", { role: "rowgroup" }, heading),
      el("tbody", { role: "rowgroup" }, ...rows),
    );
    setNumber(table, "columns", places.columns.length);
    rove(table, cells);
    frame.replaceChildren(table);
  }

  function at(row, column) {
    Object.assign(state, { row, column });
    changed();
  }

  function paint(matrix) {
    const key = [state.kind, state.layer, state.head].join();
    if (key !== shown) {
      shown = key;
      fillControls();
      fillTable(matrix);
      fillHeads(heads, data, state, changed);
    }
    frame.classList.toggle("numbers", state.numbers);
    const { row, column } = state;
    frame.querySelectorAll("tbody tr").forEach((line, r) => line.classList.toggle("at", places.rows[r] === row));
    const isAt = (node, c) => node.classList.toggle("at", places.columns[c] === column);
    frame.querySelectorAll("thead th").forEach(isAt);
    cells.forEach((line) => line.forEach(isAt));
  }
  return { node, paint };
}

/** The rows and columns that are drawn: all; of attention between a question and its context, from context to question. */
function placesOf(data, columns, matrix) {
  const first = data.spans?.first ?? 0;
  const every = (number) => Array.from({ length: number }, (_, place) => place);
  const rows = every(data.target.length);
  const apart = first > 0 && matrix.slice(first).every((row) => row.slice(first).every((weight) => weight === 0));
  if (!apart) return { rows, columns: every(columns.length) };
  return { rows: rows.slice(first), columns: every(first) };
}

export function attentionOf(data, kind) {
  return data.attention.find((each) => each.kind === kind);
}

function fillHeads(details, data, state, changed) {
  const attention = attentionOf(data, state.kind);
  const count = attention.layers[0].heads.length;
  details.hidden = attention.layers.length * count < 2;
  const fill = () => {
    if (!details.open) return;
    const rows = attention.layers.map((layer, l) =>
      layer.heads.map((_, h) => {
        const name = count > 1 ? `layer ${l + 1}, head ${h + 1}` : `layer ${l + 1}`;
        const chosen = String(state.layer) === String(l) && (count === 1 || String(state.head) === String(h));
        return el(
          "button",
          {
            type: "button",
            class: "head",
            "aria-label": name,
            title: name,
            "aria-pressed": chosen ? "true" : "false",
            onclick: () => {
              Object.assign(state, { layer: l, head: count > 1 ? h : "mean" });
              changed();
              details.querySelectorAll("button.head")[l * count + h]?.focus();
            },
          },
          thumbnail(matrixOf(attention, l, h)),
        );
      }),
    );
    const grid = el(
      "div",
      { class: "gallery", role: "group", "aria-label": "a row of heads for each layer, the lowest first" },
      ...rows.map((row, l) => el("div", { class: "layer" }, el("span", { class: "quiet" }, String(l + 1)), ...row)),
    );
    setNumber(grid, "count", count);
    rove(grid, rows);
    scrollable(grid);
    details.replaceChildren(details.querySelector("summary"), grid);
  };
  details.ontoggle = fill;
  fill();
}

/** The matrix as an image, in the colours of the page. */
function thumbnail(matrix) {
  const canvas = el("canvas", { width: matrix[0].length, height: matrix.length, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--heat").trim();
  matrix.forEach((row, r) =>
    row.forEach((weight, c) => {
      context.globalAlpha = Math.sqrt(weight);
      context.fillRect(c, r, 1, 1);
    }),
  );
  return canvas;
}
