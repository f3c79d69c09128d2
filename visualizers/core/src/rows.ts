/** Turns an entry's hunks into the rows of a mode, and folds the runs of rows that did not change. */

import type { DiffRow, Entry, Mark, Rec, Trace } from "./payload.js";

export type Mode = "split" | "inline" | "after";
export const MODES: readonly Mode[] = ["split", "inline", "after"];

/** One side of a row: line number (from 0), the line, and the characters that differ. */
export interface Side {
  readonly number: number;
  readonly record: Rec;
  readonly marks: readonly Mark[];
}

/** `hunk` numbers the change that the row belongs to, or is -1. */
export interface LineRow {
  readonly kind: "line";
  readonly old: Side | null;
  readonly new: Side | null;
  readonly hunk: number;
}

/** Rows `from` to `to` are not shown; `start` names the run, whichever part of it has been expanded. */
export interface FoldRow {
  readonly kind: "fold";
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

export type ViewRow = LineRow | FoldRow;

/** How many rows of a fold are shown at its top; the rest stays hidden. */
export type Expanded = ReadonlyMap<number, number>;

const CONTEXT = 3;
const SHORTEST_FOLD = 4;

/** All rows of an entry in side-by-side order. With `ignoreNoise`, renamed or re-indented lines do not count. */
export function diffRows(trace: Trace, entry: Entry, ignoreNoise: boolean): LineRow[] {
  const before = entry.base === null ? null : trace.entries[entry.base]!.lines;
  const after = entry.lines;
  if (before === null) return after.map((record, i) => line(null, { number: i, record, marks: [] }, -1));
  const rows: LineRow[] = [];
  let a = 0;
  let b = 0;
  const equal = (end: number): void => {
    for (; a < end; a++, b++) rows.push(line(side(before, a), side(after, b), -1));
  };
  let shown = 0;
  for (const hunk of entry.hunks) {
    equal(hunk.old[0]);
    if (hunk.plain) {
      const size = Math.max(before.length, after.length);
      for (let i = 0; i < size; i++) rows.push(line(side(before, i), side(after, i), -1));
    } else {
      const counts = hunk.rows.some((row) => !(ignoreNoise && row.noise));
      for (const row of hunk.rows) rows.push(changedRow(row, before, after, ignoreNoise, shown));
      if (counts) shown++;
    }
    a = hunk.old[1];
    b = hunk.new[1];
  }
  equal(before.length);
  return rows;
}

function changedRow(row: DiffRow, before: readonly Rec[], after: readonly Rec[], quiet: boolean, hunk: number): LineRow {
  const noise = quiet && row.noise;
  const old = row.old === null ? null : side(before, row.old, noise ? [] : row.oldMarks);
  const now = row.new === null ? null : side(after, row.new, noise ? [] : row.newMarks);
  return line(old, now, noise ? -1 : hunk);
}

function line(old: Side | null, now: Side | null, hunk: number): LineRow {
  return { kind: "line", old, new: now, hunk };
}

function side(lines: readonly Rec[], number: number, marks: readonly Mark[] = []): Side | null {
  const record = lines[number];
  return record === undefined ? null : { number, record, marks };
}

/** Whether the entry sets two languages side by side, with nothing marked. */
export function isPlain(entry: Entry): boolean {
  return entry.hunks.some((hunk) => hunk.plain);
}

/** The rows of a mode: inline puts a change's old lines before its new ones, after drops the old side. */
export function modeRows(rows: readonly LineRow[], mode: Mode, plain: boolean): LineRow[] {
  if (mode === "split") return [...rows];
  if (mode === "after" || plain) {
    return rows.filter((row) => row.new !== null).map((row) => line(null, row.new, row.hunk));
  }
  const out: LineRow[] = [];
  let waiting: LineRow[] = [];
  let current = -1;
  for (const row of rows) {
    if (row.hunk !== current) {
      out.push(...waiting);
      waiting = [];
      current = row.hunk;
    }
    if (row.hunk < 0) {
      out.push(line(null, row.new, -1));
    } else {
      if (row.old !== null) out.push(line(row.old, null, row.hunk));
      if (row.new !== null) waiting.push(line(null, row.new, row.hunk));
    }
  }
  return [...out, ...waiting];
}

/** Hides runs of unchanged rows but for some lines of context around each change; no change, no folds. */
export function fold(rows: readonly LineRow[], expanded: Expanded): ViewRow[] {
  if (!rows.some((row) => row.hunk >= 0)) return [...rows];
  const out: ViewRow[] = [];
  let start = 0;
  while (start < rows.length) {
    if (rows[start]!.hunk >= 0) {
      out.push(rows[start]!);
      start++;
      continue;
    }
    let end = start;
    while (end < rows.length && rows[end]!.hunk < 0) end++;
    out.push(...foldRun(rows, start, end, expanded));
    start = end;
  }
  return out;
}

function foldRun(rows: readonly LineRow[], start: number, end: number, expanded: Expanded): ViewRow[] {
  const from = (start === 0 ? 0 : start + CONTEXT) + (expanded.get(start) ?? 0);
  const to = end === rows.length ? end : end - CONTEXT;
  if (to - from < SHORTEST_FOLD) return rows.slice(start, end);
  return [...rows.slice(start, from), { kind: "fold", start, from, to }, ...rows.slice(to, end)];
}

/** How many separate changes the rows hold. */
export function changeCount(rows: readonly LineRow[]): number {
  return new Set(rows.filter((row) => row.hunk >= 0).map((row) => row.hunk)).size;
}
