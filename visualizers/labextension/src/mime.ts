/** The renderer of a trace's MIME type: draws the view, or the static HTML where the data cannot be read. */

import { mountPasses, PASSES_MIME } from "../../core/src/index.js";
import type { MimeModel, RendererOptions, WidgetClass } from "./jupyterlab.js";

export function mimeExtension(Widget: WidgetClass): unknown {
  class PassRenderer extends Widget {
    constructor(private readonly options: RendererOptions) {
      super();
      this.addClass("tilelab-output");
    }

    async renderModel(model: MimeModel): Promise<void> {
      const html = model.data["text/html"];
      const fallback = (into: HTMLElement): void => {
        if (typeof html === "string") into.innerHTML = this.options.sanitizer.sanitize(html);
      };
      // JupyterLab writes its language as zh_TW.
      const language = (document.documentElement.lang || "en").replace("_", "-");
      await mountPasses(this.node, model.data[this.options.mimeType], { language, fallback });
    }
  }
  return {
    id: "tilelab:passes",
    rendererFactory: {
      safe: true,
      mimeTypes: [PASSES_MIME],
      createRenderer: (options: RendererOptions) => new PassRenderer(options),
    },
    // Before HTML (50) and pictures (90), so that the view is what JupyterLab shows.
    rank: 0,
    dataType: "json",
  };
}
