/** The program after a pass, beside or over the one before it: rows with word marks, folds and links. */

import type { Context, Part } from "./context.js";
import { button, el, pieces, reveal } from "./dom.js";
import { isLinked, sourceOf } from "./links.js";
import type { Entry, Rec } from "./payload.js";
import { changeCount, diffRows, fold, isPlain, type LineRow, modeRows, type Side, type ViewRow } from "./rows.js";
import type { State } from "./state.js";

// Rows are laid out in blocks that the browser skips while they are out of sight.
const BLOCK = 100;
// More rows than any program has: a fold expanded by this much is gone.
const ALL = 1e9;

interface Cell {
  readonly node: HTMLElement;
  readonly record: Rec;
}

export interface ProgramPart extends Part {
  /** Goes to the next (1) or previous (-1) change of this pass; false when there is none further on. */
  moveChange(step: number): boolean;
  /** Scrolls to a line (from 0) of the program after the pass. */
  showLine(number: number): void;
  changes(): number;
}

export function program(context: Context): ProgramPart {
  return new Program(context);
}

class Program implements ProgramPart {
  readonly node: HTMLElement;
  private all: LineRow[] = [];
  private rows: ViewRow[] = [];
  private elements: HTMLElement[] = [];
  private cells: Cell[] = [];
  private folds: { node: HTMLElement; from: number; to: number }[] = [];
  private cursor = -1;
  private current = -1;

  constructor(private readonly context: Context) {
    this.node = el("div", { class: "tl-program", role: "table", tabindex: 0 });
    this.node.addEventListener("click", (event) => this.click(event));
    this.node.addEventListener("keydown", (event) => this.key(event));
    context.store.listen((state, before) => this.update(state, before));
    this.draw(context.store.state);
  }

  changes(): number {
    return changeCount(this.all);
  }

  private get entry(): Entry {
    return this.context.trace.entries[this.context.store.state.entry]!;
  }

  private update(state: State, before: State): void {
    const moved = state.entry !== before.entry;
    const redraw = (["entry", "mode", "ignoreNoise", "expanded"] as const).some((k) => state[k] !== before[k]);
    if (redraw) {
      if (moved) this.current = this.cursor = -1;
      const top = this.node.scrollTop;
      this.draw(state);
      this.node.scrollTop = moved ? 0 : top;
      if (moved && state.selection !== null) this.revealLinked();
    } else if (state.selection !== before.selection) {
      this.mark(state);
      this.revealLinked();
    }
  }

  /** Scrolls to the first linked line when none is in sight. */
  private revealLinked(): void {
    const linked = this.cells.filter(({ node }) => node.classList.contains("tl-linked"));
    const pane = this.node.getBoundingClientRect();
    const inSight = linked.some(({ node }) => {
      const { top, bottom } = node.getBoundingClientRect();
      return top >= pane.top && bottom <= pane.bottom;
    });
    if (!inSight && linked[0] !== undefined) reveal(this.node, linked[0].node, "center");
  }

  private draw(state: State): void {
    const { trace, text } = this.context;
    const entry = trace.entries[state.entry]!;
    const plain = isPlain(entry);
    const narrow = entry.base === null || (entry.hunks.length === 0 && state.mode === "split");
    const mode = narrow ? "after" : state.mode;
    this.all = modeRows(diffRows(trace, entry, state.ignoreNoise), mode, plain);
    this.rows = mode === "after" ? this.all : fold(this.all, state.expanded);
    this.cells = [];
    this.folds = [];
    this.elements = this.rows.map((row, i) => (row.kind === "fold" ? this.foldRow(row, i) : this.lineRow(row, i, mode === "split")));
    const blocks: HTMLElement[] = [];
    for (let i = 0; i < this.elements.length; i += BLOCK) {
      const part = this.elements.slice(i, i + BLOCK);
      blocks.push(el("div", { class: "tl-block", role: "rowgroup", style: `--tl-rows: ${part.length}` }, ...part));
    }
    this.node.replaceChildren(...blocks);
    this.node.setAttribute("aria-label", text.program(entry.name));
    this.mark(state);
  }

  private lineRow(row: LineRow, index: number, split: boolean): HTMLElement {
    const changed = row.hunk >= 0;
    const node = el("div", { class: split ? "tl-row tl-two" : "tl-row", role: "row", "data-row": index });
    if (split) node.append(this.cell(row.old, changed ? "−" : " "), this.cell(row.new, changed ? "+" : " "));
    else if (row.new !== null) node.append(this.cell(row.new, changed ? "+" : " "));
    else node.append(this.cell(row.old, "−"));
    return node;
  }

  private cell(side: Side | null, sign: string): HTMLElement {
    if (side === null) return el("div", { class: "tl-cell tl-empty", role: "cell" });
    const { record, number, marks } = side;
    const kind = sign === "+" ? "tl-add" : sign === "−" ? "tl-del" : "";
    // A wrapped line goes on two columns deeper than it starts.
    const hang = record.text.length - record.text.trimStart().length + 2;
    const body = el("span", { class: "tl-text", style: `--tl-hang: ${hang}ch` });
    for (const [piece, marked] of pieces(record.text, marks)) body.append(marked ? el(sign === "−" ? "del" : "ins", {}, piece) : piece);
    const node = el(
      "div",
      { class: `tl-cell ${kind}`, role: "cell", title: this.origin(record) },
      el("span", { class: "tl-no" }, String(number + 1)),
      el("span", { class: "tl-src" }, this.sourceMark(record)),
      el("span", { class: "tl-sign" }, sign),
      body,
    );
    this.cells.push({ node, record });
    return node;
  }

  private sourceMark(record: Rec): string {
    const from = sourceOf(record);
    if (from?.kind !== "source" || this.entry.kind === "source") return "";
    return from.first === from.last ? `L${from.first}` : `L${from.first}–${from.last}`;
  }

  private origin(record: Rec): string {
    const { text } = this.context;
    const from = sourceOf(record);
    if (from?.kind === "source") {
      const lines = from.first === from.last ? text.line(from.first) : `${text.line(from.first)}–${from.last}`;
      return text.from(lines, record.maker);
    }
    return record.maker === null ? text.nowhere : text.madeBy(record.maker);
  }

  private foldRow(row: Extract<ViewRow, { kind: "fold" }>, index: number): HTMLElement {
    const { text } = this.context;
    const label = el("span", { class: "tl-fold-label" });
    const size = row.to - row.from;
    const more = size > 10 ? button({ class: "tl-link" }, text.expandTen, () => this.expand(row.start, 10)) : null;
    const all = button({ class: "tl-link" }, text.expandAll, () => this.expand(row.start, ALL));
    this.folds.push({ node: label, from: row.from, to: row.to });
    return el("div", { class: "tl-fold", role: "row", "data-row": index }, el("div", { role: "cell" }, label, more, all));
  }

  private expand(start: number, by: number): void {
    const { store } = this.context;
    const expanded = new Map(store.state.expanded);
    expanded.set(start, (expanded.get(start) ?? 0) + by);
    store.set({ expanded });
    this.node.focus({ preventScroll: true });
  }

  /** Lights the linked lines, and says how many a fold hides. */
  private mark(state: State): void {
    const { text } = this.context;
    const selection = state.selection;
    for (const { node, record } of this.cells) node.classList.toggle("tl-linked", selection !== null && isLinked(record, selection));
    for (const { node, from, to } of this.folds) {
      const hidden = this.all.slice(from, to).filter((row) => selection !== null && row.new !== null && isLinked(row.new.record, selection)).length;
      node.textContent = text.fold(to - from) + (hidden > 0 ? ` · ◆ ${text.linked(hidden)}` : "");
    }
  }

  private click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const found = target.closest<HTMLElement>("[data-row]");
    if (target.closest("button") !== null || found === null || !document.getSelection()?.isCollapsed) return;
    this.moveTo(Number(found.dataset["row"]), false);
    const cell = target.closest<HTMLElement>(".tl-cell");
    const record = this.cells.find((c) => c.node === cell)?.record;
    if (record !== undefined) this.link(record, event.altKey || event.shiftKey);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.node || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step !== undefined) {
      this.moveTo(Math.min(Math.max(this.cursor + step, 0), this.rows.length - 1), true);
    } else if (event.key === "Enter") {
      const row = this.rows[this.cursor];
      if (row?.kind === "fold") this.expand(row.start, ALL);
      else if (row !== undefined) this.link((row.new ?? row.old)!.record, event.shiftKey);
    } else return;
    event.preventDefault();
  }

  private link(record: Rec, callee: boolean): void {
    const { store } = this.context;
    const wanted = sourceOf(record, callee);
    const now = store.state.selection;
    const same = JSON.stringify(wanted) === JSON.stringify(now);
    store.go({ selection: same ? null : wanted });
    this.context.say(this.origin(record));
  }

  private moveTo(index: number, speak: boolean): void {
    this.elements[this.cursor]?.classList.remove("tl-current");
    this.elements[this.cursor]?.removeAttribute("aria-current");
    this.cursor = index;
    const node = this.elements[index];
    const row = this.rows[index];
    if (node === undefined || row === undefined) return;
    node.classList.add("tl-current");
    node.setAttribute("aria-current", "true");
    reveal(this.node, node);
    if (!speak) return;
    const side = row.kind === "line" ? (row.new ?? row.old) : null;
    this.context.say(side === null ? (node.textContent ?? "") : `${side.record.text.trim()} — ${this.origin(side.record)}`);
  }

  moveChange(step: number): boolean {
    const first = this.rows.findIndex((row) => row.kind === "line" && row.hunk === this.current + step);
    if (first < 0 || this.current + step < 0) return false;
    this.current += step;
    this.moveTo(first, true);
    reveal(this.node, this.elements[first]!, "center");
    return true;
  }

  showLine(number: number): void {
    const at = this.rows.findIndex((row) => row.kind === "line" && row.new?.number === number);
    if (at >= 0) {
      this.moveTo(at, false);
      reveal(this.node, this.elements[at]!, "center");
      return;
    }
    const hidden = this.all.findIndex((row) => row.new?.number === number);
    const folded = this.rows.find((row) => row.kind === "fold" && row.from <= hidden && hidden < row.to);
    if (folded?.kind !== "fold") return;
    this.expand(folded.start, ALL);
    this.showLine(number);
  }
}
