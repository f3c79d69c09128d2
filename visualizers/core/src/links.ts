/** What is selected, and which lines of which entries it lights: a range of source lines, or one buffer. */

import type { Entry, Rec, Trace } from "./payload.js";

export type Selection =
  | { readonly kind: "source"; readonly first: number; readonly last: number }
  | { readonly kind: "buffer"; readonly name: string };

/** Whether the line comes from the selected source lines, also through a macro call, or touches the buffer. */
export function isLinked(record: Rec, selection: Selection): boolean {
  if (selection.kind === "buffer") return record.buffers.includes(selection.name);
  const { first, last } = selection;
  if (record.calls.some((call) => first <= call && call <= last)) return true;
  return record.first > 0 && record.first <= last && record.last >= first;
}

/** How many lines of each entry are linked, by entry number. The source's own lines count as its lines. */
export function linkCounts(trace: Trace, selection: Selection): number[] {
  const memo = new Map<Rec, boolean>();
  const linked = (record: Rec): boolean => {
    const known = memo.get(record);
    if (known !== undefined) return known;
    const answer = isLinked(record, selection);
    memo.set(record, answer);
    return answer;
  };
  return trace.entries.map((entry) => entry.lines.reduce((sum, record) => sum + (linked(record) ? 1 : 0), 0));
}

/** The source lines of a line: the caller's for an inlined helper, unless the helper's own are asked for. */
export function sourceOf(record: Rec, callee = false): Selection | null {
  const call = record.calls[0];
  if (call !== undefined && !callee) return { kind: "source", first: call, last: call };
  if (record.first === 0) return null;
  return { kind: "source", first: record.first, last: record.last };
}

/** The buffers that any line touches, in order of appearance. */
export function buffersOf(trace: Trace): string[] {
  const names = new Set<string>();
  for (const entry of trace.entries) for (const record of entry.lines) record.buffers.forEach((b) => names.add(b));
  return [...names];
}

/** How many lines of the entry come from each source line. */
export function derivedCounts(entry: Entry): Map<number, number> {
  const counts = new Map<number, number>();
  for (const record of entry.lines) {
    const from = sourceOf(record);
    if (from === null || from.kind !== "source") continue;
    for (let i = from.first; i <= from.last; i++) counts.set(i, (counts.get(i) ?? 0) + 1);
  }
  return counts;
}
