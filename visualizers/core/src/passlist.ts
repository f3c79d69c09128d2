/** The list of passes: number, name, stage, time, badge and line counts, with a filter and a switch for idle ones. */

import { type Context, type Part, SIGNS } from "./context.js";
import { el, reveal } from "./dom.js";
import { linkCounts } from "./links.js";
import type { Entry } from "./payload.js";
import type { State } from "./state.js";

/** Whether the entry is shown under the state's switch and filter. */
export function isListed(entry: Entry, state: Pick<State, "hideUnchanged" | "filter">): boolean {
  if (state.hideUnchanged && (entry.status === "unchanged" || entry.status === "skipped")) return false;
  return entry.name.toLowerCase().includes(state.filter.trim().toLowerCase());
}

export function passList(context: Context): Part {
  const { trace, store, text, id } = context;
  const filter = el("input", { type: "search", placeholder: text.filterPasses, "aria-label": text.filterPasses });
  filter.addEventListener("input", () => store.set({ filter: filter.value }));
  const hide = el("input", { type: "checkbox" });
  hide.addEventListener("change", () => store.set({ hideUnchanged: hide.checked }));
  const count = el("span", { class: "tl-count" });
  const list = el("ul", { role: "listbox", tabindex: 0, "aria-label": text.passes, class: "tl-passes" });
  const items = trace.entries.map((entry) => item(context, entry));
  const controls = el("div", { class: "tl-list-controls" }, filter, el("label", {}, hide, text.hideUnchanged), count);
  const node = el("nav", { class: "tl-list", "aria-label": text.passes }, controls, list);

  list.addEventListener("click", (event) => {
    const clicked = (event.target as HTMLElement).closest<HTMLElement>("[data-entry]");
    if (clicked !== null) store.go({ entry: Number(clicked.dataset["entry"]) });
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    movePass(context, step);
  });

  const update = (state: State): void => {
    hide.checked = state.hideUnchanged;
    if (filter.value !== state.filter) filter.value = state.filter;
    const shown = trace.entries.filter((entry) => isListed(entry, state));
    count.textContent = text.shownOf(shown.length, trace.entries.length);
    list.replaceChildren(...shown.map((entry) => items[entry.index]!.node));
    const counts = state.selection === null ? null : linkCounts(trace, state.selection);
    for (const [index, { node: row, chip }] of items.entries()) {
      row.setAttribute("aria-selected", String(index === state.entry));
      const linked = counts?.[index] ?? 0;
      chip.hidden = counts === null;
      chip.textContent = `◆ ${linked}`;
      chip.title = text.linked(linked);
      row.classList.toggle("tl-linked", linked > 0);
    }
    list.setAttribute("aria-activedescendant", `${id}-entry-${state.entry}`);
    const current = items[state.entry]!.node;
    if (current.isConnected) reveal(list, current);
  };
  store.listen(update);
  update(store.state);
  return { node };
}

function item(context: Context, entry: Entry): { node: HTMLElement; chip: HTMLElement } {
  const { text, id } = context;
  const chip = el("span", { class: "tl-chip", hidden: true });
  const changed = entry.status === "changed";
  const node = el(
    "li",
    { role: "option", id: `${id}-entry-${entry.index}`, "data-entry": entry.index, class: `tl-pass tl-is-${entry.status}` },
    el("span", { class: "tl-index" }, String(entry.index)),
    el("span", { class: "tl-name", title: `${entry.name}: ${entry.doc}` }, entry.name),
    el("span", { class: `tl-badge tl-is-${entry.status}` }, `${SIGNS[entry.status]} ${text.status[entry.status]}`),
    el(
      "span",
      { class: "tl-meta" },
      el("span", {}, entry.kind === "step" ? `${entry.stage} · ${entry.ms!.toFixed(2)} ms` : entry.stage),
      el("span", { class: "tl-delta" }, changed ? `+${entry.added} −${entry.removed}` : ""),
      chip,
    ),
  );
  return { node, chip };
}

/** Goes to the next or previous entry that is listed. */
export function movePass(context: Context, step: number): void {
  const { trace, store } = context;
  const state = store.state;
  for (let i = state.entry + step; i >= 0 && i < trace.entries.length; i += step) {
    if (!isListed(trace.entries[i]!, state)) continue;
    store.go({ entry: i });
    const entry = trace.entries[i]!;
    context.say(`${i} ${entry.name}, ${context.text.status[entry.status]}`);
    return;
  }
}
