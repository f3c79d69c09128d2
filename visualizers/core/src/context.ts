/** What every part of a view shares. */

import type { Trace } from "./payload.js";
import type { Store } from "./state.js";
import type { Strings } from "./strings.js";

export interface Context {
  readonly trace: Trace;
  readonly store: Store;
  readonly text: Strings;
  /** A prefix for ids, so that several views live in one page. */
  readonly id: string;
  /** Tells a screen reader. */
  say(message: string): void;
}

/** A part of the view: its element, and how it follows the state. */
export interface Part {
  readonly node: HTMLElement;
}

export const SIGNS: Readonly<Record<string, string>> = {
  source: "»",
  changed: "●",
  unchanged: "○",
  skipped: "–",
  failed: "✕",
  code: "»",
};
