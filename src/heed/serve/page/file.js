// Translation of a file: upload, and a link to the translated file.

import { sendFile } from "./api.js";
import { el } from "./dom.js";
import { alertBox, latest } from "./panel.js";

/** Fields to choose a file. `direction()` and `options()` give the rest of the request. */
export function fileFields(formats, direction, options) {
  const work = latest();
  const box = alertBox();
  const choice = el("input", { type: "file", accept: formats.join(","), onchange: chosen });
  const column = el("input", { type: "text", placeholder: "name or number", dir: "auto" });
  const go = el("button", { type: "button", class: "button", disabled: true, onclick: translate }, "Translate file");
  const status = el("p", { class: "quiet", role: "status" });
  const node = el(
    "details",
    { class: "options" },
    el("summary", {}, "Translate a file"),
    el(
      "div",
      { class: "controls" },
      el("label", { class: "field" }, el("span", {}, `File (${formats.join(" ")})`), choice),
      el("label", { class: "field small" }, el("span", {}, "Table column"), column),
      go,
    ),
    box.node,
    status,
  );
  return { node };

  function chosen() {
    work.stop();
    box.clear();
    status.replaceChildren();
    go.disabled = !choice.files.length;
  }

  async function translate() {
    chosen();
    const [file] = choice.files;
    if (!file) return;
    status.textContent = `Translating ${file.name} …`;
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
        const name = file.name.replace(/(\.[^.]*)?$/, `.${to}$1`);
        status.replaceChildren("Translated: ", el("a", { href, download: name }, name));
      },
      (error) => {
        status.replaceChildren();
        box.show(error, translate);
      },
    );
    go.disabled = !choice.files.length;
  }
}
