// Translating a whole file: it is sent, and a link to its translation comes back.

import { sendFile } from "./api.js";
import { el } from "./dom.js";
import { alertBox, latest } from "./panel.js";

/** Fields to choose a file; `direction()` and `options()` say what is wanted beside it. */
export function fileFields(formats, direction, options) {
  const work = latest();
  const box = alertBox();
  const choice = el("input", { type: "file", accept: formats.join(","), onchange: chosen });
  const column = el("input", { type: "text", placeholder: "its name", dir: "auto" });
  const go = el("button", { type: "button", class: "button", disabled: true, onclick: translate }, "Translate the file");
  const told = el("p", { class: "quiet", role: "status" });
  const node = el(
    "details",
    { class: "options" },
    el("summary", {}, "A whole file"),
    el(
      "div",
      { class: "controls" },
      el("label", { class: "field" }, el("span", {}, `File (${formats.join(" ")})`), choice),
      el("label", { class: "field small" }, el("span", {}, "Column of a table"), column),
      go,
    ),
    box.node,
    told,
  );
  return { node };

  function chosen() {
    work.stop();
    box.clear();
    told.replaceChildren();
    go.disabled = !choice.files.length;
  }

  async function translate() {
    chosen();
    const [file] = choice.files;
    if (!file) return;
    told.textContent = `Translating ${file.name} …`;
    go.disabled = true;
    const { from, to, model } = direction();
    const { keep, glossary } = options();
    const terms = glossary?.map(({ source, target }) => [source, target]);
    const fields = {
      source: from,
      target: to,
      ...(model ? { model } : {}),
      ...(column.value.trim() ? { src_column: column.value.trim() } : {}),
      ...(keep ? { keep: keep.join("\n") } : {}),
      ...(terms ? { glossary: JSON.stringify(Object.fromEntries(terms)) } : {}),
    };
    await work.run(
      async (signal) => {
        const { translatedFileUrl: url } = await sendFile("translate_file", file, fields, signal);
        const href = `download_file/${url.split("/").at(-1)}`;
        told.replaceChildren("Translated: ", el("a", { href, download: file.name }, file.name));
      },
      (error) => {
        told.replaceChildren();
        box.show(error, translate);
      },
    );
    go.disabled = !choice.files.length;
  }
}
