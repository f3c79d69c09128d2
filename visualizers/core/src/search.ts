/** Finds text in all passes at once. Regular expressions run in a worker that is ended after 200 ms. */

import type { Trace } from "./payload.js";

export interface Found {
  readonly entry: number;
  readonly line: number;
  readonly text: string;
}

export type SearchResult =
  | { readonly kind: "found"; readonly hits: readonly Found[]; readonly total: number }
  | { readonly kind: "invalid"; readonly message: string }
  | { readonly kind: "slow" };

const LIMIT_MS = 200;
const MOST = 500;

/** Plain search, without regard to case; a line that stays as it is in later passes is found once in each. */
export function searchText(trace: Trace, query: string): SearchResult {
  const wanted = query.toLowerCase();
  return collect(trace, (text) => text.toLowerCase().includes(wanted));
}

function collect(trace: Trace, test: (text: string) => boolean): SearchResult {
  const hits: Found[] = [];
  let total = 0;
  for (const entry of trace.entries) {
    entry.lines.forEach((record, line) => {
      if (!test(record.text)) return;
      total++;
      if (hits.length < MOST) hits.push({ entry: entry.index, line, text: record.text.trim() });
    });
  }
  return { kind: "found", hits, total };
}

const WORKER = `onmessage = (event) => {
  const { pattern, texts } = event.data;
  const regex = new RegExp(pattern);
  postMessage(texts.map((text) => regex.test(text)));
};`;

/** Search by regular expression over the distinct lines, within the time limit. */
export async function searchRegex(trace: Trace, pattern: string): Promise<SearchResult> {
  try {
    new RegExp(pattern);
  } catch (error) {
    return { kind: "invalid", message: (error as Error).message };
  }
  const texts = [...new Set(trace.entries.flatMap((entry) => entry.lines.map((record) => record.text)))];
  const matches = await inWorker(pattern, texts);
  if (matches === null) return { kind: "slow" };
  const matching = new Set(texts.filter((_, i) => matches[i]));
  return collect(trace, (text) => matching.has(text));
}

function inWorker(pattern: string, texts: string[]): Promise<boolean[] | null> {
  const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const worker = new Worker(address);
  return new Promise((resolve) => {
    const finish = (answer: boolean[] | null): void => {
      clearTimeout(timer);
      worker.terminate();
      URL.revokeObjectURL(address);
      resolve(answer);
    };
    // The clock starts when the worker has had time to start; a slow start is not a slow pattern.
    const timer = setTimeout(() => finish(null), LIMIT_MS + 300);
    worker.onmessage = (event: MessageEvent<boolean[]>) => finish(event.data);
    worker.onerror = () => finish(null);
    worker.postMessage({ pattern, texts });
  });
}
