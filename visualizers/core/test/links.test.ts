import { describe, expect, it } from "vitest";
import { buffersOf, derivedCounts, isLinked, linkCounts, sourceOf } from "../src/links.js";
import { small } from "./helpers.js";

const trace = small();

describe("links between source and program", () => {
  it("count the lines of every entry that come from a source line", () => {
    expect(linkCounts(trace, { kind: "source", first: 1, last: 1 })).toEqual([1, 10, 10]);
    expect(linkCounts(trace, { kind: "source", first: 2, last: 2 })).toEqual([1, 10, 10]);
  });

  it("lead from an inlined line to its caller, and to the helper on demand", () => {
    const record = { text: "", first: 40, last: 41, maker: null, buffers: [], calls: [7, 30] };
    expect(sourceOf(record)).toEqual({ kind: "source", first: 7, last: 7 });
    expect(sourceOf(record, true)).toEqual({ kind: "source", first: 40, last: 41 });
    for (const line of [7, 30, 40, 41]) expect(isLinked(record, { kind: "source", first: line, last: line })).toBe(true);
    expect(isLinked(record, { kind: "source", first: 8, last: 29 })).toBe(false);
  });

  it("say nothing of a line that has no source", () => {
    const record = { text: "", first: 0, last: 0, maker: "insert_waits", buffers: [], calls: [] };
    expect(sourceOf(record)).toBeNull();
    expect(isLinked(record, { kind: "source", first: 0, last: 100 })).toBe(false);
  });

  it("follow a buffer", () => {
    expect(buffersOf(trace)).toEqual(["A"]);
    expect(linkCounts(trace, { kind: "buffer", name: "A" })).toEqual([0, 1, 2]);
  });

  it("count derived lines for the source's margin", () => {
    expect(derivedCounts(trace.entries[2]!)).toEqual(new Map([[1, 10], [2, 10]]));
  });
});
