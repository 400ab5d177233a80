// Renderer of report.md. Markdown that heed does not write is shown as text.

import { el, scrollable } from "./dom.js";

const INLINE =
  /\\([\\`*_[\]<>|#~$&])|``\s(.+?)\s``|`([^`]+)`|\*\*(.+?)\*\*|!\[[^\]]*\]\([^)]*\)|\[([^\]]*)\]\([^)]*\)/gsu;

function inline(text) {
  const out = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    out.push(text.slice(end, match.index));
    end = match.index + match[0].length;
    const [, escaped, ticks, code, strong, link] = match;
    if (escaped) out.push(escaped);
    else if (ticks || code) out.push(el("code", {}, ticks ?? code));
    else if (strong) out.push(el("strong", {}, ...inline(strong)));
    else if (link) out.push(link);
  }
  return [...out, text.slice(end)];
}

function cells(line) {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
}

function table(lines) {
  const [head, , ...rows] = lines.map(cells);
  const content = el(
    "table",
    { class: "plain" },
    el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, ...cell)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, ...cell))))),
  );
  return scrollable(el("div", { class: "frame", tabindex: "0", role: "region", "aria-label": "table" }, content));
}

function list(lines) {
  const items = lines.join("\n").split(/\n(?=- )/);
  const item = (text) => {
    const [first, ...nested] = text.slice(2).split(/\n\s+- /);
    const inner = nested.map((each) => el("li", {}, ...inline(each.replaceAll("\n", " "))));
    return el("li", {}, ...inline(first.replaceAll("\n", " ")), inner.length ? el("ul", {}, ...inner) : null);
  };
  return el("ul", {}, ...items.map(item));
}

/** The title of the report is an h2 of the page. */
function heading(marks, text) {
  const level = Math.min(4, marks.length + 1);
  return el(`h${level}`, level === 2 ? { id: "report-title" } : {}, ...inline(text));
}

function block(lines) {
  const title = /^(#{1,6}) (.*)/.exec(lines[0]);
  if (title) return [heading(title[1], title[2]), ...(lines.length > 1 ? block(lines.slice(1)) : [])];
  if (lines.every((line) => line.trim().startsWith("|"))) return [table(lines)];
  if (/^- /.test(lines[0])) return [list(lines)];
  return [el("p", {}, ...inline(lines.join(" ")))];
}

function levelOf(node) {
  return /^H[1-6]$/.test(node?.tagName ?? "H1") ? Number(node?.tagName[1] ?? 1) : 9;
}

/** The elements of a report, without sections that only have a picture. */
export function report(markdown) {
  const out = [];
  const parts = markdown.replaceAll("\r\n", "\n").split(/^```.*$/m);
  parts.forEach((part, place) => {
    if (place % 2) out.push(el("pre", { tabindex: "0" }, part.replace(/^\n|\n$/g, "")));
    else for (const lines of part.split(/\n\s*\n/)) if (lines.trim()) out.push(...block(lines.trim().split("\n")));
  });
  const shown = out.filter((each) => each.tagName !== "P" || each.textContent.trim());
  return shown.filter((each, place) => levelOf(each) === 9 || levelOf(each) < levelOf(shown[place + 1]));
}
