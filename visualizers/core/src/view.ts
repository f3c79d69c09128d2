/** The pass view: puts the parts together under one root and connects them. */

import { about } from "./about.js";
import type { Context } from "./context.js";
import { button, el } from "./dom.js";
import { bindKeys } from "./keys.js";
import { linkCounts, type Selection } from "./links.js";
import { movePass, passList } from "./passlist.js";
import { readTrace, SCHEMA, type Trace, UnreadableTrace } from "./payload.js";
import { program } from "./program.js";
import { MODES } from "./rows.js";
import { searchBox } from "./searchbox.js";
import { sourcePane } from "./source.js";
import { browserMemory, type Memory, Store } from "./state.js";
import { type Strings, stringsFor } from "./strings.js";
import { addStyles } from "./styles.js";
import { copyText, toolbar } from "./toolbar.js";

/** Sent from the view's root when lines of the source are selected, so that an editor may show them. */
export const SOURCE_EVENT = "tilelab-source";

export interface SourceDetail {
  readonly file: string;
  readonly cell: string | null;
  readonly first_line: number;
  readonly lines: readonly string[];
  /** The selected lines, counted in the file; null when nothing is selected. */
  readonly range: readonly [number, number] | null;
  /** A listener that finds the text edited since calls this. */
  stale(): void;
}

export interface Options {
  readonly language?: string;
  readonly memory?: Memory;
  /** Draws the static form into the given element, when the data cannot be read. */
  readonly fallback?: (into: HTMLElement) => void;
}

// Below this width of the whole view, in CSS pixels, two columns of code beside the list are too narrow to read.
const NARROW = 900;

let views = 0;

/** Draws the view into `host`; where the data cannot be read, a note and the static form. Returns the root. */
export async function mountPasses(host: HTMLElement, data: unknown, options: Options = {}): Promise<HTMLElement> {
  const text = stringsFor(options.language ?? document.documentElement.lang ?? "en");
  addStyles(document);
  try {
    const trace = await readTrace(data);
    performance.mark("tilelab-start");
    const root = build(trace, text, options);
    host.replaceChildren(root);
    performance.measure("tilelab-mount", "tilelab-start");
    return root;
  } catch (error) {
    const said = error instanceof UnreadableTrace ? text.wrongVersion(error.found, SCHEMA) : text.damaged((error as Error).message);
    const form = el("div");
    const root = el("div", { class: "tl-view tl-unread" }, el("p", { role: "note", class: "tl-note" }, said), form);
    options.fallback?.(form);
    host.replaceChildren(root);
    return root;
  }
}

function build(trace: Trace, text: Strings, options: Options): HTMLElement {
  const memory = options.memory ?? browserMemory();
  const live = el("div", { class: "tl-live", role: "status", "aria-live": "polite" });
  const store = new Store(firstEntry(trace), memory);
  const context: Context = { trace, store, text, id: `tl-${++views}`, say: (said) => void (live.textContent = said) };
  const body = program(context);
  const show = (entry: number, line: number): void => {
    if (store.state.entry !== entry) store.go({ entry });
    body.showLine(line);
  };
  const change = (step: number): void => moveChange(context, body, step);
  const search = searchBox(context, show);
  const help = helpBox(context);
  // JupyterLab's own shortcuts (j, k, s, …) must not act while this view has the focus.
  const root = el("div", { class: "tl-view", role: "region", "aria-label": `${trace.kernel}, ${trace.target}`, "data-lm-suppress-shortcuts": "true" });
  const main = el("div", { class: "tl-main" }, about(context).node, toolbar(context, body, change).node, selectionBar(context), body.node);
  root.append(
    header(context, search.node),
    ...trace.notices.map((notice) => el("p", { class: "tl-note", role: "note" }, notice)),
    help,
    el("div", { class: "tl-columns" }, passList(context).node, el("div", { class: "tl-right" }, sourcePane(context).node, main)),
    live,
  );
  bindKeys(root, {
    pass: (step) => movePass(context, step),
    change,
    toggleUnchanged: () => store.set({ hideUnchanged: !store.state.hideUnchanged }),
    nextMode: () => store.set({ mode: MODES[(MODES.indexOf(store.state.mode) + 1) % MODES.length]! }),
    search: () => search.focus(),
    help: () => store.set({ help: !store.state.help }),
    back: () => store.back(),
    escape: () => escape(context, root),
  });
  store.listen((state, before) => {
    if (state.selection !== before.selection) announceSource(context, root, state.selection);
  });
  onFirstLayout(root, (width) => store.set(width < NARROW && memory.load().mode === undefined ? { mode: "inline" } : {}));
  return root;
}

/** Only a view that is laid out knows its width and can scroll its list; in a notebook that comes after drawing. */
function onFirstLayout(root: HTMLElement, act: (width: number) => void): void {
  const observer = new ResizeObserver(([entry]) => {
    if (entry === undefined || entry.contentRect.width === 0) return;
    observer.disconnect();
    act(entry.contentRect.width);
  });
  observer.observe(root);
}

/** A failed pass if there is one, else the first that changed an existing program. */
function firstEntry(trace: Trace): number {
  const failed = trace.entries.findIndex((entry) => entry.status === "failed");
  if (failed >= 0) return failed;
  const changed = trace.entries.findIndex((e) => e.status === "changed" && e.hunks.some((hunk) => !hunk.plain));
  return Math.max(changed, 0);
}

function header(context: Context, search: HTMLElement): HTMLElement {
  const { trace, text, store } = context;
  const versions = Object.entries(trace.versions).map(([name, version]) => `${name} ${version}`);
  const call = trace.call === "" ? null : el("span", { class: "tl-call" }, `${text.call} `, el("code", {}, trace.call), " ",
    button({ class: "tl-link", "aria-label": text.copyCall }, text.copy, () => copyText(context, trace.call)));
  return el(
    "div",
    { class: "tl-header" },
    el("div", { class: "tl-head" }, el("h2", {}, trace.kernel), el("code", { class: "tl-target" }, trace.target),
      el("span", { class: "tl-summary" }, trace.summary), el("span", { class: "tl-space" }), search,
      button({ "aria-label": text.help, title: text.help }, "?", () => store.set({ help: !store.state.help }))),
    el("div", { class: "tl-sub" }, call, el("span", { class: "tl-versions" }, versions.join(" · "))),
  );
}

function helpBox({ text, store }: Context): HTMLElement {
  const rows = text.keys.flatMap(([keys, what]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, what)]);
  const node = el("section", { class: "tl-help", "aria-label": text.help, hidden: true }, el("dl", {}, ...rows));
  store.listen((state) => {
    node.hidden = !state.help;
  });
  return node;
}

/** Says what is selected and how far it spreads, with a button to end it. */
function selectionBar({ trace, store, text }: Context): HTMLElement {
  const said = el("span");
  const node = el("div", { class: "tl-selection", hidden: true }, said, button({ class: "tl-link" }, text.clear, () => store.go({ selection: null })));
  store.listen((state, before) => {
    const selection = state.selection;
    if (selection === before.selection) return;
    node.hidden = selection === null;
    if (selection === null) return;
    const counts = linkCounts(trace, selection).slice(1);
    const lines = counts.reduce((sum, count) => sum + count, 0);
    said.textContent = `◆ ${text.linkedTotal(nameOf(selection, text), lines, counts.filter((count) => count > 0).length)}`;
  });
  return node;
}

function nameOf(selection: Selection, text: Strings): string {
  if (selection.kind === "buffer") return selection.name;
  return selection.first === selection.last ? text.line(selection.first) : `${text.line(selection.first)}–${selection.last}`;
}

/** The next change of this pass; past its last one, the first change of the next listed pass that has any. */
function moveChange(context: Context, body: ReturnType<typeof program>, step: number): void {
  const { trace, store } = context;
  if (body.moveChange(step)) return;
  for (let i = store.state.entry + step; i > 0 && i < trace.entries.length; i += step) {
    if (trace.entries[i]!.status !== "changed") continue;
    store.go({ entry: i });
    if (step > 0) body.moveChange(1);
    return;
  }
}

function escape(context: Context, root: HTMLElement): void {
  const { store } = context;
  if (store.state.help) store.set({ help: false });
  else if (store.state.selection !== null) store.go({ selection: null });
  else {
    const outside = root.closest<HTMLElement>(".jp-Notebook");
    if (outside !== null) outside.focus();
    else (document.activeElement as HTMLElement | null)?.blur();
  }
}

function announceSource({ trace, text }: Context, root: HTMLElement, selection: Selection | null): void {
  const { file, cell, first_line } = trace.source;
  const range: SourceDetail["range"] = selection?.kind === "source" ? [selection.first, selection.last] : null;
  const lines = trace.entries[0]!.lines.map((record) => record.text);
  const stale = (): void => {
    if (root.querySelector(".tl-stale") !== null) return;
    root.querySelector(".tl-sub")?.append(el("span", { class: "tl-stale", role: "note" }, text.stale));
  };
  const detail: SourceDetail = { file, cell, first_line, lines, range, stale };
  root.dispatchEvent(new CustomEvent(SOURCE_EVENT, { bubbles: true, detail }));
}
