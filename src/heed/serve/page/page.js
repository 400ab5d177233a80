// Web page of the server: panels for each task of its models, and their reports.

import { answerPanel } from "./answer.js";
import { ask, askText, useKey } from "./api.js";
import { captionPanel } from "./caption.js";
import { classifyPanel } from "./classify.js";
import { el } from "./dom.js";
import { generatePanel } from "./generate.js";
import { alertBox } from "./panel.js";
import { readPanel } from "./read.js";
import { report } from "./report.js";
import { tagPanel } from "./tag.js";
import { translatePanel } from "./translate.js";
import { tabView } from "./view.js";

const main = document.getElementById("main");
const about = document.getElementById("about");
const dialog = document.getElementById("report");
let served = null;
let inUse = null;

async function start() {
  try {
    const settings = await ask("frontend/settings");
    if (settings.keyRequired && !served) {
      askForKey();
      return;
    }
    await open();
  } catch (error) {
    failed(error, start);
  }
}

function failed(error, retry) {
  const box = alertBox();
  main.replaceChildren(box.node);
  box.show(error, retry);
}

function askForKey() {
  const key = el("input", { type: "password", id: "key", autocomplete: "off", required: true });
  const box = alertBox();
  const form = el(
    "form",
    {
      class: "card",
      onsubmit: async (event) => {
        event.preventDefault();
        box.clear();
        if (!/^[ -~]*$/.test(key.value)) {
          box.show({ message: "An API key has only ASCII characters. Check the one that you have entered." });
          return;
        }
        useKey(key.value);
        try {
          await open();
        } catch (error) {
          box.show(error);
        }
      },
    },
    el("h2", {}, "This server requires an API key"),
    el(
      "div",
      { class: "controls" },
      el("label", { class: "field" }, el("span", {}, "API key"), key),
      el("button", { class: "button main" }, "Continue"),
    ),
    box.node,
  );
  main.replaceChildren(form);
  key.focus();
}

async function open() {
  served = await ask("api/models");
  const ableTo = (ability) => served.models.filter((each) => each.abilities.includes(ability));
  const kinds = [
    ["Translate", ableTo("translate"), translatePanel],
    ["Write", ableTo("generate"), generatePanel],
    ["Classify", ableTo("explain"), classifyPanel],
    ["Tag", ableTo("annotate"), tagPanel],
    ["Answer", ableTo("extract"), answerPanel],
    ["Caption", ableTo("caption"), captionPanel],
    ["Inside", ableTo("read"), readPanel],
  ].filter(([, models]) => models.length);
  if (!kinds.length) {
    main.replaceChildren(
      el("p", { class: "card" }, "This page cannot use the models of this server. Use the API."),
    );
    return;
  }
  const panels = kinds.map(([name, , panel]) => [name, panel(served, modelInUse)]);
  if (panels.length > 1) {
    const tabs = tabView(
      panels.map(([name, panel]) => [name, panel.node]),
      () => panels.find(([name]) => name === tabs.shown())[1].shown(),
    );
    tabs.node.classList.add("modes");
    main.replaceChildren(tabs.node);
  } else main.replaceChildren(panels[0][1].node);
  panels[0][1].focus();
  modelInUse(kinds[0][1][0].name);
}

function modelInUse(name) {
  inUse = served.models.find((each) => each.name === name) ?? inUse;
  about.hidden = !inUse;
  document.getElementById("tagline").textContent = inUse
    ? [inUse.name, `${inUse.parameters.toLocaleString("en")} parameters`].join(" · ")
    : "";
}

about.addEventListener("click", async () => {
  const close = el(
    "div",
    { class: "close" },
    el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Close"),
  );
  const body = el("div", {}, el("p", { class: "quiet" }, "Loading …"));
  dialog.replaceChildren(close, el("div", {}, body));
  dialog.showModal();
  try {
    if (inUse.report)
      body.replaceChildren(...report(await askText(`api/models/${encodeURIComponent(inUse.name)}/report`)));
    else
      body.replaceChildren(
        el("h2", { id: "report-title" }, inUse.name),
        el("p", {}, "This run has no report.md."),
        ...factsOf(inUse),
      );
  } catch (error) {
    body.replaceChildren(el("p", {}, error.message));
  }
});

function factsOf(model) {
  const pair = [model.source?.name, model.target?.name].filter(Boolean).join(" → ");
  return [
    el("p", {}, `${model.kind}${pair ? ` · ${pair}` : ""} · ${model.parameters.toLocaleString("en")} parameters`),
  ];
}

start();
