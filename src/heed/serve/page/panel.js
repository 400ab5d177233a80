// Parts shared by the panels: error messages, cancellable work, and the inspection.

import { el, select } from "./dom.js";

/** Shows one error at a time, with a button to try again where that can help. */
export function alertBox() {
  const node = el("div", { role: "alert" });
  return {
    node,
    clear: () => node.replaceChildren(),
    show(error, retry) {
      const wait = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
      const button =
        retry && error.canRetry !== false
          ? el(
              "button",
              {
                type: "button",
                class: "button",
                onclick: () => {
                  node.replaceChildren();
                  retry();
                },
              },
              "Try again",
            )
          : null;
      node.replaceChildren(el("div", { class: "alert" }, el("span", {}, error.message + wait), button));
    },
  };
}

/** A choice of the model in `state.model`; nothing for a single one. `chosen` follows each choice. */
export function modelChoice(models, state, modelInUse, chosen) {
  if (models.length < 2) return null;
  const names = models.map(({ name }) => [name, name]);
  return select("Model", names, state.model.name, (name) => {
    state.model = models.find((each) => each.name === name);
    modelInUse(name);
    chosen();
  });
}

/** Runs one piece of work at a time. A new one cancels the one before. */
export function latest() {
  let controller = null;
  const stop = () => controller?.abort();
  async function run(work, failed) {
    stop();
    const mine = (controller = new AbortController());
    try {
      await work(mine.signal);
    } catch (error) {
      if (!mine.signal.aborted) failed(error);
    }
    return !mine.signal.aborted;
  }
  return { run, stop };
}

/** Work that starts after a pause without further calls. */
export function after(milliseconds, work) {
  let timer = 0;
  const cancel = () => clearTimeout(timer);
  const start = () => {
    cancel();
    timer = setTimeout(work, milliseconds);
  };
  return { start, cancel };
}

export function onControlEnter(work) {
  return (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    work();
  };
}

/** The inspection below a panel. `load(signal)` gives its element. */
export function insideView(load) {
  const box = alertBox();
  const body = el("div", {});
  const node = el(
    "details",
    {
      class: "inside",
      open: true,
      hidden: true,
      ontoggle: () => {
        if (node.open) refresh();
      },
    },
    el("summary", {}, "Inside the model"),
    box.node,
    body,
  );
  const work = latest();
  let stale = true;

  function refresh() {
    if (!stale || node.hidden || !node.open) return;
    stale = false;
    body.firstElementChild?.classList.add("busy");
    work.run(
      async (signal) => {
        const view = await load(signal);
        box.clear();
        const place = placeOf(document.activeElement);
        body.replaceChildren(view);
        if (place) view.querySelector(place)?.focus();
      },
      (error) => {
        body.replaceChildren();
        box.show(error, () => {
          stale = true;
          refresh();
        });
      },
    );
  }

  /** Selects what gets the focus in the next view, in place of an element of the present one; null for any other. */
  function placeOf(focused) {
    if (!body.contains(focused)) return null;
    if (focused.type === "radio") return "input:checked";
    return focused.getAttribute("role") === "tab" ? '[role="tab"][aria-selected="true"]' : '.word[aria-pressed="true"]';
  }

  return {
    node,
    clear() {
      work.stop();
      node.hidden = true;
      body.replaceChildren();
      box.clear();
    },
    update() {
      stale = true;
      node.hidden = false;
      refresh();
    },
    /** Show the inspection, wherever the page is scrolled to. */
    reveal() {
      node.open = true;
      node.scrollIntoView({ block: "nearest" });
    },
  };
}
