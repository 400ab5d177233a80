// Elements, text, numbers and keyboard navigation of the pages.

/** An element. Attributes that are null or false are omitted; strings become text, never markup. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Sets the custom property `--name` for the style sheet. */
export function setNumber(node, name, value) {
  node.style.setProperty(`--${name}`, String(Math.round(value * 1000) / 1000));
}

/** Fades the edges of a box that has more to scroll to. */
export function scrollable(box) {
  const update = () => {
    const fade = (name, hidden) => box.style.setProperty(`--${name}`, hidden > 1 ? "2.5rem" : "0px");
    const hidden = box.scrollWidth - box.clientWidth;
    const left = getComputedStyle(box).direction === "rtl" ? hidden + box.scrollLeft : box.scrollLeft;
    fade("left", left);
    fade("right", hidden - left);
    fade("below", box.scrollHeight - box.clientHeight - box.scrollTop);
  };
  const sizes = new ResizeObserver(update);
  const observe = () => [box, ...box.children].forEach((each) => sizes.observe(each));
  new MutationObserver(observe).observe(box, { childList: true });
  box.addEventListener("scroll", update, { passive: true });
  box.classList.add("scrollable");
  observe();
  return box;
}

const SIGNS = new Map([
  ["\n", "⏎"],
  ["\r", "␍"],
  ["\t", "⇥"],
  ["\u00a0", "⍽"],
  ["\u00ad", "[U+00AD]"],
  ["\ufeff", "[U+FEFF]"],
]);
const INVISIBLE = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** The text of a token without invisible characters and without changes of the writing direction. */
export function visible(text) {
  const trimmed = text.trim() === "" ? text.replaceAll(" ", "␣") : text.replace(/^ +| +$/g, "");
  return trimmed.replace(
    INVISIBLE,
    (sign) => SIGNS.get(sign) ?? `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}

/** The writing direction, from the first letter; isolated parts count too. */
export function directionOf(text) {
  const letter = /\p{L}/u.exec(text)?.[0] ?? "a";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(letter)
    ? "rtl"
    : "ltr";
}

/** The visible text of a token, after an ellipsis if it continues a word. */
export function pieceName({ text, goes_on: goesOn }) {
  return (goesOn ? "…" : "") + visible(text);
}

export function percent(share) {
  if (share >= 0.9995) return "100\u202f%";
  if (share > 0 && share < 0.0005) return "<\u202f0.1\u202f%";
  return `${share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)}\u202f%`;
}

const BITS = { translation: 4, "language-model": 12, reader: 12 };

/** Surprise at a word, from 0 to 1: its bits, relative to a usual number of bits for the task. */
export function doubt(prob, task) {
  return Math.max(0, Math.min(1, (-Math.log2(Math.max(prob, 1e-9)) - 0.5) / BITS[task]));
}

/** Whether a key is pressed with another one that gives it a meaning of the browser. */
export function hasModifier(event) {
  return event.altKey || event.ctrlKey || event.metaKey;
}

/** Roving tab index: the tab key reaches one element of `rows`, arrow keys move the focus among them. */
export function rove(container, rows) {
  const places = new Map();
  rows.forEach((row, r) =>
    row.forEach((cell, c) => {
      cell.tabIndex = places.size ? -1 : 0;
      places.set(cell, [r, c]);
    }),
  );
  const steps = {
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    Home: [0, -Infinity],
    End: [0, Infinity],
  };
  container.addEventListener("focusin", (event) => {
    if (!places.has(event.target)) return;
    for (const cell of places.keys()) cell.tabIndex = -1;
    event.target.tabIndex = 0;
  });
  container.addEventListener("keydown", (event) => {
    const place = places.get(event.target),
      step = steps[event.key];
    if (!place || !step || hasModifier(event)) return;
    const sign =
      getComputedStyle(event.target.parentElement).direction === "rtl" && event.key.startsWith("Arrow") ? -1 : 1;
    const row = rows[Math.max(0, Math.min(rows.length - 1, place[0] + step[0]))];
    const column = Math.max(0, Math.min(row.length - 1, place[1] + sign * step[1]));
    event.preventDefault();
    row[column].focus();
  });
}

/** A labelled select. `options` are pairs [value, text]. */
export function select(label, options, value, onchange) {
  const choice = el("select", { onchange: (event) => onchange(event.target.value) });
  const field = el("label", { class: "field" }, el("span", {}, label), choice);
  setOptions(field, options, value);
  return field;
}

/** Replaces the options of a labelled select, which keeps the focus. */
export function setOptions(field, options, value) {
  const all = options.map(([key, text]) =>
    el("option", { value: key, selected: String(key) === String(value) }, text),
  );
  field.querySelector("select").replaceChildren(...all);
}

export function checkbox(label, checked, onchange) {
  const box = el("input", { type: "checkbox", checked, onchange: (event) => onchange(event.target.checked) });
  return el("label", { class: "check" }, box, el("span", {}, label));
}
