/** Reads the packed data of a trace (see tilelab_viz/compact.py for its layout) into plain objects. */

export const SCHEMA = "tilelab.trace.v1";

export type Status = "source" | "changed" | "unchanged" | "skipped" | "failed" | "code";
export type Mark = readonly [number, number];

/** One distinct line: its text, where it comes from, and what it touches. */
export interface Rec {
  readonly text: string;
  readonly first: number;
  readonly last: number;
  readonly maker: string | null;
  readonly buffers: readonly string[];
  readonly calls: readonly number[];
}

/** One line of a side-by-side diff; null where a side has no line. */
export interface DiffRow {
  readonly old: number | null;
  readonly new: number | null;
  readonly oldMarks: readonly Mark[];
  readonly newMarks: readonly Mark[];
  readonly noise: boolean;
}

export interface Hunk {
  readonly old: Mark;
  readonly new: Mark;
  readonly plain: boolean;
  readonly rows: readonly DiffRow[];
}

export interface Note {
  readonly kind: string;
  readonly text: string;
  readonly source: number | null;
}

export interface Hit {
  readonly rule: string;
  readonly source: number | null;
  readonly before: string;
  readonly after: string;
}

export interface Entry {
  readonly index: number;
  readonly kind: "source" | "step" | "code";
  readonly name: string;
  readonly doc: string;
  readonly stage: string;
  readonly ms: number | null;
  readonly status: Status;
  readonly reason: string;
  readonly added: number;
  readonly removed: number;
  readonly lines: readonly Rec[];
  readonly base: number | null;
  readonly hunks: readonly Hunk[];
  readonly notes: readonly Note[];
  readonly hits: readonly Hit[];
}

export interface Trace {
  readonly kernel: string;
  readonly target: string;
  readonly call: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly source: { readonly file: string; readonly cell: string | null; readonly first_line: number };
  readonly language: string | null;
  readonly entries: readonly Entry[];
  readonly notices: readonly string[];
}

/** The data that this code cannot read: another schema version, or damaged. */
export class UnreadableTrace extends Error {
  constructor(
    readonly found: string,
    message: string,
  ) {
    super(message);
  }
}

type Json = any; // eslint-disable-line -- the shape is checked by `expand` as it reads

/** Unpacks and reads the data under the MIME type; UnreadableTrace when it is of another version. */
export async function readTrace(data: Json): Promise<Trace> {
  const found = String(data?.schema ?? "nothing");
  if (found !== SCHEMA) {
    throw new UnreadableTrace(found, `this view reads ${SCHEMA}, and the output says ${found}`);
  }
  return expand(JSON.parse(await gunzip(String(data.data))));
}

async function gunzip(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** The compact object with its indices resolved; lines that occur in several entries stay one object. */
export function expand(compact: Json): Trace {
  const strings: string[] = compact.strings;
  const records: Rec[] = compact.records.map((r: Json) => ({
    text: r[0],
    first: r[1],
    last: r[2],
    maker: r[3] < 0 ? null : strings[r[3]],
    buffers: r[4].map((b: number) => strings[b]),
    calls: r[5],
  }));
  const entries = compact.entries.map((e: Json, index: number) => expandEntry(e, index, records));
  const { kernel, target, call, versions, summary, source, language, notices } = compact;
  return { kernel, target, call, versions, summary, source, language, notices, entries };
}

function expandEntry(e: Json, index: number, records: Rec[]): Entry {
  const lines: Rec[] = [];
  for (let i = 0; i < e.rows.length; i += 2) {
    for (let k = 0; k < e.rows[i + 1]; k++) lines.push(records[e.rows[i] + k]!);
  }
  const { kind, name, doc, stage, ms, status, reason, added, removed, base, notes } = e;
  const hits = e.hits.map((h: Json) => ({ rule: h[0], source: h[1], before: h[2], after: h[3] }));
  const hunks = e.hunks.map(expandHunk);
  return { index, kind, name, doc, stage, ms, status, reason, added, removed, base, notes, hits, lines, hunks };
}

function expandHunk(h: Json): Hunk {
  const rows = h[5].map((r: Json) => ({
    old: r[0] < 0 ? null : r[0],
    new: r[1] < 0 ? null : r[1],
    oldMarks: r[2],
    newMarks: r[3],
    noise: r[4] === 1,
  }));
  return { old: [h[0], h[1]], new: [h[2], h[3]], plain: h[4] === 1, rows };
}
