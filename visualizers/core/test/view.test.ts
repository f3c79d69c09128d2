// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { mountPasses, SOURCE_EVENT, type SourceDetail } from "../src/index.js";
import { readTrace, UnreadableTrace } from "../src/payload.js";
import { packed } from "./helpers.js";

const memory = { load: () => ({}), save: () => undefined };
let host: HTMLElement;

beforeEach(() => {
  document.body.replaceChildren();
  host = document.createElement("div");
  document.body.append(host);
});

describe("the data in a notebook", () => {
  it("unpacks to the entries in order", async () => {
    const trace = await readTrace(packed);
    expect(trace.entries.map((entry) => entry.name).slice(0, 4)).toEqual(["source", "parse", "check_tiles", "simplify"]);
    expect(trace.entries.at(-1)!.kind).toBe("code");
    expect(trace.entries[3]!.hunks[0]!.rows[0]!.newMarks.length).toBeGreaterThan(0);
  });

  it("is refused when it is of another version", async () => {
    await expect(readTrace({ schema: "tilelab.trace.v2" })).rejects.toBeInstanceOf(UnreadableTrace);
  });
});

describe("the view", () => {
  it("shows each pass with name, stage, time, badge and counts", async () => {
    await mountPasses(host, packed, { memory });
    const item = [...host.querySelectorAll(".tl-pass")].find((node) => node.textContent?.includes("plan_pipeline"));
    expect(item?.textContent).toBe("8plan_pipeline● changedtile · 0.85 ms+17 −6◆ 0");
  });

  it("tells an editor which source lines are meant", async () => {
    await mountPasses(host, packed, { memory });
    const heard: SourceDetail[] = [];
    document.addEventListener(SOURCE_EVENT, (event) => heard.push((event as CustomEvent<SourceDetail>).detail));
    host.querySelectorAll<HTMLElement>(".tl-line")[13]!.click();
    expect(heard[0]!.range).toEqual([14, 14]);
    expect(heard[0]!.lines[13]).toContain("T.gemm");
    heard[0]!.stale();
    heard[0]!.stale();
    expect(host.querySelectorAll(".tl-stale")).toHaveLength(1);
  });

  it("says what is wrong and shows the static form when the data is damaged", async () => {
    const fallback = (into: HTMLElement): void => void (into.textContent = "the table");
    await mountPasses(host, { schema: "tilelab.trace.v1", data: "!!" }, { memory, fallback });
    expect(host.querySelector(".tl-note")?.textContent).toContain("cannot be drawn");
    expect(host.textContent).toContain("the table");
  });
});
