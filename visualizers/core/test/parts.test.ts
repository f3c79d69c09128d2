// @vitest-environment happy-dom
import { describe, expect, it, vi } from "vitest";
import { pieces } from "../src/dom.js";
import { bindKeys } from "../src/keys.js";
import { isListed } from "../src/passlist.js";
import { searchText } from "../src/search.js";
import { type State, Store } from "../src/state.js";
import { stringsFor } from "../src/strings.js";
import { small } from "./helpers.js";

describe("marks", () => {
  it("cut a text into marked and unmarked pieces", () => {
    expect(pieces("for ko in r", [[4, 6]])).toEqual([["for ", false], ["ko", true], [" in r", false]]);
    expect(pieces("ab", [[0, 2]])).toEqual([["ab", true]]);
    expect(pieces("", [])).toEqual([["", false]]);
  });

  it("count characters outside the basic plane once, as Python does", () => {
    expect(pieces("🧮🧮ab", [[2, 3]])).toEqual([["🧮🧮", false], ["a", true], ["b", false]]);
  });
});

describe("the list of passes", () => {
  const entry = small().entries[2]!;

  it("hides unchanged and skipped passes on demand", () => {
    const shown = (status: "changed" | "unchanged" | "skipped" | "failed"): boolean =>
      isListed({ ...entry, status }, { hideUnchanged: true, filter: "" });
    expect([shown("changed"), shown("failed"), shown("unchanged"), shown("skipped")]).toEqual([true, true, false, false]);
  });

  it("filters by name without regard to case", () => {
    expect(isListed(entry, { hideUnchanged: false, filter: " REWR " })).toBe(true);
    expect(isListed(entry, { hideUnchanged: false, filter: "parse" })).toBe(false);
  });
});

describe("search", () => {
  it("finds a text in every entry that holds it", () => {
    const result = searchText(small(), "NINE");
    expect(result).toEqual({ kind: "found", total: 1, hits: [{ entry: 2, line: 9, text: "x9 = nine" }] });
  });
});

describe("state", () => {
  const memory = () => ({ load: () => ({}), save: vi.fn<(state: State) => void>() });

  it("goes back to where the reader was", () => {
    const store = new Store(1, memory());
    store.go({ entry: 2 });
    store.go({ selection: { kind: "buffer", name: "A" } });
    store.back();
    expect([store.state.entry, store.state.selection]).toEqual([2, null]);
    store.back();
    expect(store.state.entry).toBe(1);
    store.back();
    expect(store.state.entry).toBe(1);
  });

  it("forgets opened folds when another pass is shown", () => {
    const store = new Store(1, memory());
    store.set({ expanded: new Map([[0, 10]]) });
    store.go({ entry: 2 });
    expect(store.state.expanded.size).toBe(0);
  });

  it("keeps the reader's choices, and only when they change", () => {
    const kept = memory();
    const store = new Store(1, kept);
    store.go({ entry: 2 });
    expect(kept.save).not.toHaveBeenCalled();
    store.set({ hideUnchanged: true });
    expect(kept.save).toHaveBeenCalledOnce();
  });
});

describe("keys", () => {
  const actions = (): Parameters<typeof bindKeys>[1] => ({
    pass: vi.fn(), change: vi.fn(), toggleUnchanged: vi.fn(), nextMode: vi.fn(), search: vi.fn(), help: vi.fn(), back: vi.fn(), escape: vi.fn(),
  });
  const press = (node: HTMLElement, key: string, more: KeyboardEventInit = {}): void => {
    node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  };

  it("act on the view but not while a text is typed or a modifier is held", () => {
    const root = document.createElement("div");
    const field = document.createElement("input");
    field.type = "search";
    root.append(field);
    const acts = actions();
    bindKeys(root, acts);
    press(root, "j");
    press(field, "j");
    press(root, "k", { ctrlKey: true });
    press(field, "Escape");
    press(root, "ArrowLeft", { altKey: true });
    expect(acts.pass).toHaveBeenCalledExactlyOnceWith(1);
    expect(acts.escape).toHaveBeenCalledOnce();
    expect(acts.back).toHaveBeenCalledOnce();
  });
});

describe("catalogues", () => {
  it("have the same texts in every language, each translated", () => {
    const [english, chinese] = [stringsFor("en-GB"), stringsFor("zh-TW")];
    const flat = (value: unknown): string[] =>
      typeof value === "string" ? [value]
      : typeof value === "function" ? [String((value as (...a: unknown[]) => unknown)(3, 4, 5))]
      : Object.values(value as object).flatMap(flat);
    expect(Object.keys(chinese)).toEqual(Object.keys(english));
    for (const key of Object.keys(english) as (keyof typeof english)[]) {
      expect(flat(chinese[key]).length).toBe(flat(english[key]).length);
      expect(flat(chinese[key])).not.toEqual(flat(english[key]));
    }
  });
});
