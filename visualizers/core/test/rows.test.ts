import { describe, expect, it } from "vitest";
import { changeCount, diffRows, fold, type LineRow, modeRows, type ViewRow } from "../src/rows.js";
import { small } from "./helpers.js";

const trace = small();
const rewrite = trace.entries[2]!;
const texts = (rows: ViewRow[]): string[] =>
  rows.map((row) => (row.kind === "fold" ? `fold ${row.to - row.from}` : `${row.old?.record.text ?? ""}|${row.new?.record.text ?? ""}`));

describe("rows of a pass", () => {
  const rows = diffRows(trace, rewrite, false);

  it("hold every line of both programs in order", () => {
    expect(rows.map((row) => row.old?.number)).toEqual([...Array(20).keys()]);
    expect(rows.map((row) => row.new?.number)).toEqual([...Array(20).keys()]);
  });

  it("mark only the lines of the hunk", () => {
    expect(rows.flatMap((row, i) => (row.hunk >= 0 ? [i] : []))).toEqual([9, 10]);
    expect(rows[9]!.new!.marks).toEqual([[5, 9]]);
  });

  it("leave out noise when asked", () => {
    const quiet = diffRows(trace, rewrite, true);
    expect(quiet.flatMap((row, i) => (row.hunk >= 0 ? [i] : []))).toEqual([9]);
    expect(quiet[10]!.new!.marks).toEqual([]);
    expect(changeCount(quiet)).toBe(1);
  });

  it("set source and first program side by side without marks", () => {
    const plain = diffRows(trace, trace.entries[1]!, false);
    expect(plain).toHaveLength(20);
    expect(plain.filter((row) => row.old !== null)).toHaveLength(2);
    expect(changeCount(plain)).toBe(0);
  });

  it("put old lines before new ones in the inline form", () => {
    const inline = modeRows(rows, "inline", false);
    expect(texts(inline.slice(9, 13))).toEqual(["x9 = 9|", "x10 = 10|", "|x9 = nine", "|x10 = ten"]);
    expect(inline).toHaveLength(22);
  });

  it("keep only new lines in the form after the pass", () => {
    expect(modeRows(rows, "after", false).every((row: LineRow) => row.old === null && row.new !== null)).toBe(true);
  });
});

describe("folds", () => {
  const rows = diffRows(trace, rewrite, false);

  it("hide unchanged runs but for three lines of context", () => {
    expect(texts(fold(rows, new Map())).filter((text) => text.startsWith("fold"))).toEqual(["fold 6", "fold 6"]);
  });

  it("open by the number of lines asked for, and then altogether", () => {
    const some = fold(rows, new Map([[11, 2]]));
    expect(texts(some).filter((text) => text.startsWith("fold"))).toEqual(["fold 6", "fold 4"]);
    const all = fold(rows, new Map([[11, 1e9]]));
    expect(texts(all).filter((text) => text.startsWith("fold"))).toEqual(["fold 6"]);
  });

  it("name the rows that they hide", () => {
    const folds = fold(rows, new Map()).filter((row) => row.kind === "fold");
    expect(folds).toEqual([
      { kind: "fold", start: 0, from: 0, to: 6 },
      { kind: "fold", start: 11, from: 14, to: 20 },
    ]);
  });

  it("do not hide a program that did not change", () => {
    const same = rows.map((row) => ({ ...row, hunk: -1 }));
    expect(fold(same, new Map())).toHaveLength(20);
  });

  it("lose no line: shown and hidden rows are all rows", () => {
    const seen = fold(rows, new Map()).reduce((sum, row) => sum + (row.kind === "fold" ? row.to - row.from : 1), 0);
    expect(seen).toBe(rows.length);
  });
});
