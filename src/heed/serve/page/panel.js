// What do the panels share: telling of errors, work that newer work ends, the view that is drawn below?

import { el } from "./dom.js";
import { inspectionView } from "./view.js";

/** A place for one error at a time, with a button to try again. */
export function alertBox() {
  const node = el("div", { role: "alert" });
  return {
    node,
    clear: () => node.replaceChildren(),
    show(error, retry) {
      const wait = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
      const button = retry
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

/** Runs one piece of work at a time: a new one ends the one before. */
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

/** Work that waits until nothing has called for it for a while. */
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

/** The part of the page that looks inside; `load(signal)` gives {data, languages, options} or null for nothing. */
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
    el("summary", {}, "Look inside"),
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
        const found = await load(signal);
        box.clear();
        body.replaceChildren(...(found ? [inspectionView(found.data, found.languages, found.options)] : []));
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
  };
}
