/** Starts the view in a page made by `export_html`: draws the payload and puts the static form away. */

import { mountPasses, PASSES_MIME } from "./index.js";

function start(): void {
  for (const script of document.querySelectorAll("script[data-tilelab-payload]")) {
    const view = document.querySelector<HTMLElement>("[data-tilelab-view]");
    const form = document.querySelector<HTMLElement>("[data-tilelab-static]");
    const { mime, data } = JSON.parse(script.textContent ?? "{}") as { mime: string; data: unknown };
    if (view === null || form === null || mime !== PASSES_MIME) continue;
    const fallback = (into: HTMLElement): void => into.append(form);
    void mountPasses(view, data, { language: navigator.language, fallback }).then((root) => {
      form.hidden = !root.contains(form);
    });
  }
}

start();
