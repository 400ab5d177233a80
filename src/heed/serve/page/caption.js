// Panel for captioning an image: it is made small in the browser and sent; the caption comes with what the model looked at.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { captionView } from "./glances.js";
import { alertBox, latest, modelChoice } from "./panel.js";

const LONGEST = 512; // pixels of the longer side of what is sent
const MOST = 3; // captions that are shown

export function captionPanel(served, modelInUse) {
  const models = served.models.filter((each) => each.abilities.includes("caption"));
  const state = { model: models[0], file: null, canvas: null };
  const work = latest();
  const box = alertBox();
  const chosen = el("input", {
    type: "file",
    id: "to-caption",
    accept: "image/*",
    onchange: () => chosen.files[0] && open(chosen.files[0]),
  });
  const drop = el(
    "div",
    {
      class: "drop",
      ondragover: (event) => event.preventDefault(),
      ondrop: (event) => {
        event.preventDefault();
        if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
      },
    },
    el("label", { for: "to-caption" }, "Choose an image, or drop one here"),
    chosen,
  );
  const view = el("div", { role: "status" });
  const card = el("div", { class: "card" }, modelChoice(models, state, modelInUse, caption), drop, box.node);
  const node = el("div", {}, card, view);
  return { node, focus: () => chosen.focus(), shown: () => modelInUse(state.model.name) };

  async function open(file) {
    clear();
    Object.assign(state, { file, canvas: null });
    const canvas = await createImageBitmap(file).then(small, () => null);
    if (state.file !== file) return; // another one was chosen meanwhile
    if (!canvas) {
      box.show({ message: `${file.name} is not an image that this browser can read.`, canRetry: false });
      return;
    }
    state.canvas = canvas;
    caption();
  }

  function clear() {
    work.stop();
    box.clear();
    view.replaceChildren();
  }

  function caption() {
    const { canvas } = state;
    if (!canvas) return;
    clear();
    const image = canvas.toDataURL("image/jpeg", 0.92).split(",")[1];
    work.run(
      async (signal) => {
        const answer = await ask("api/caption", { model: state.model.name, image, top: MOST }, signal);
        view.replaceChildren(captionView(answer.caption, () => copy(canvas)));
      },
      (error) => box.show(error, caption),
    );
  }
}

/** The image on a canvas of a few hundred pixels, on white. */
function small(image) {
  const scale = Math.min(1, LONGEST / Math.max(image.width, image.height));
  const [width, height] = [image.width, image.height].map((size) => Math.max(1, Math.round(size * scale)));
  const canvas = el("canvas", { width, height });
  const brush = canvas.getContext("2d");
  brush.fillStyle = "white";
  brush.fillRect(0, 0, width, height);
  brush.drawImage(image, 0, 0, width, height);
  return canvas;
}

function copy(canvas) {
  const other = el("canvas", { width: canvas.width, height: canvas.height, "aria-hidden": "true" });
  other.getContext("2d").drawImage(canvas, 0, 0);
  return other;
}
