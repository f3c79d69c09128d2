/** The controls over the program: mode, noise, steps between changes, buffers, and ways to take the text away. */

import type { Context, Part } from "./context.js";
import { button, el } from "./dom.js";
import { buffersOf } from "./links.js";
import type { Entry } from "./payload.js";
import type { ProgramPart } from "./program.js";
import { isPlain, type Mode, MODES } from "./rows.js";
import type { State } from "./state.js";

const ENDINGS: Readonly<Record<string, string>> = { cuda: "cu", hip: "hip", llvm: "ll" };

export function toolbar(context: Context, program: ProgramPart, step: (by: number) => void): Part {
  const { trace, store, text } = context;
  const group = el("div", { class: "tl-group", role: "radiogroup", "aria-label": text.mode });
  const modes = MODES.map((mode: Mode) => {
    const node = button({ role: "radio" }, text[mode], () => store.set({ mode }));
    group.append(node);
    return { mode, node };
  });
  group.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || event.altKey) return;
    event.preventDefault();
    const at = (MODES.indexOf(store.state.mode) + by + MODES.length) % MODES.length;
    store.set({ mode: MODES[at]! });
    modes[at]!.node.focus();
  });
  const noise = el("input", { type: "checkbox" });
  noise.addEventListener("change", () => store.set({ ignoreNoise: noise.checked }));
  const changes = el("span", { class: "tl-changes" });
  const previous = button({ "aria-label": text.keys[1]![1], title: "p" }, "↑", () => step(-1));
  const next = button({ "aria-label": text.keys[1]![1], title: "n" }, "↓", () => step(1));
  const node = el(
    "div",
    { class: "tl-toolbar" },
    group,
    el("label", {}, noise, text.ignoreNoise),
    el("span", { class: "tl-steps" }, previous, next, changes),
    followBox(context),
    el("span", { class: "tl-space" }),
    ...textButtons(context),
  );
  const update = (state: State): void => {
    noise.checked = state.ignoreNoise;
    for (const { mode, node: radio } of modes) {
      radio.setAttribute("aria-checked", String(mode === state.mode));
      radio.tabIndex = mode === state.mode ? 0 : -1;
    }
    const count = program.changes();
    const shown = trace.entries[state.entry]!;
    const comparable = shown.base !== null && !isPlain(shown);
    changes.textContent = !comparable ? "" : count > 0 ? text.changes(count) : text.noChange;
    previous.disabled = next.disabled = !trace.entries.some((entry) => entry.status === "changed");
  };
  store.listen(update);
  update(store.state);
  return { node };
}

function followBox({ trace, store, text }: Context): HTMLElement | null {
  const names = buffersOf(trace);
  if (names.length === 0) return null;
  const box = el("select", { "aria-label": text.follow }, el("option", { value: "" }, text.followNone));
  box.append(...names.map((name) => el("option", { value: name }, name)));
  box.addEventListener("change", () => {
    store.go({ selection: box.value === "" ? null : { kind: "buffer", name: box.value } });
  });
  store.listen((state) => {
    box.value = state.selection?.kind === "buffer" ? state.selection.name : "";
  });
  return box;
}

function textButtons(context: Context): HTMLElement[] {
  const { trace, store, text } = context;
  const entry = (): Entry => trace.entries[store.state.entry]!;
  const all = (): string => `${entry().lines.map((record) => record.text).join("\n")}\n`;
  const address = (): string => URL.createObjectURL(new Blob([all()], { type: "text/plain;charset=utf-8" }));
  const copy = button({}, text.copy, () => copyText(context, all()));
  const download = button({}, text.download, () => {
    const ending = { source: "py", step: "tir", code: ENDINGS[trace.language ?? ""] ?? "txt" }[entry().kind];
    const href = address();
    el("a", { href, download: `${trace.kernel}.${entry().index}.${entry().name.replace(/\W+/g, "_")}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
  const open = button({}, text.openText, () => window.open(address(), "_blank", "noopener"));
  return [copy, download, open];
}

/** Puts text on the clipboard and says whether that worked. */
export function copyText({ say, text }: Context, what: string): void {
  const done = navigator.clipboard?.writeText(what) ?? Promise.reject(new Error("no clipboard"));
  done.then(
    () => say(text.copied),
    () => say(text.copyFailed),
  );
}
