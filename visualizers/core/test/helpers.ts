/** Reads the recorded traces in the compact form that `tilelab_viz` writes. */

import { expand, type Trace } from "../src/payload.js";
import matmul from "./data/matmul.json" with { type: "json" };

/** The packed data of the recorded matrix product, as it stands in a notebook. */
export const packed: Readonly<Record<string, unknown>> = matmul;

/** A small trace: a source line, a program of twenty lines, and a pass that changed lines 9 and 10. */
export function small(): Trace {
  const records = Array.from({ length: 20 }, (_, i) => [`x${i} = ${i}`, i < 10 ? 1 : 2, i < 10 ? 1 : 2, 0, i === 5 ? [2] : [], []]);
  records.push(["x9 = nine", 1, 1, 1, [2], []], ["x10 = ten", 0, 0, 1, [], [2]], ["T.f(A)", 1, 1, -1, [], []], ["T.g(A)", 2, 2, -1, [], []]);
  const entry = (name: string, status: string, rows: number[], base: number | null, hunks: unknown[]): unknown => ({
    kind: name === "source" ? "source" : "step", name, doc: "", stage: "tile", ms: 1, status, reason: "", added: 0, removed: 0,
    rows, base, hunks, notes: [], hits: [],
  });
  return expand({
    kernel: "small", target: "llvm", call: "", versions: {}, summary: "", source: { file: "a.py", cell: null, first_line: 1 },
    language: null, notices: [], strings: ["parse", "rewrite", "A"], records,
    entries: [
      entry("source", "source", [22, 2], null, []),
      entry("parse", "changed", [0, 20], 0, [[0, 2, 0, 20, 1, []]]),
      entry("rewrite", "changed", [0, 9, 20, 2, 11, 9], 1, [
        [9, 11, 9, 11, 0, [[9, 9, [[5, 6]], [[5, 9]], 0], [10, 10, [[6, 8]], [[6, 9]], 1]]],
      ]),
    ],
  });
}
