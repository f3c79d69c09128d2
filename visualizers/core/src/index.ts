/** The framework-free core of tilelab's views; the JupyterLab extension and the standalone page both use it. */

export { mountPasses, type Options, SOURCE_EVENT, type SourceDetail } from "./view.js";
export { SCHEMA } from "./payload.js";

export const PASSES_MIME = "application/vnd.tilelab.trace.v1+json";
