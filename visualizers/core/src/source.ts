/** The user's source: a click on a line lights what came of it, and linked lines are lit here. */

import type { Context, Part } from "./context.js";
import { el, reveal } from "./dom.js";
import { derivedCounts } from "./links.js";
import type { State } from "./state.js";

export function sourcePane(context: Context): Part {
  const { trace, store, text } = context;
  const entry = trace.entries[0]!;
  const first = trace.source.first_line;
  const name = trace.source.cell ?? trace.source.file;
  const rows = entry.lines.map((record, i) => {
    const count = el("span", { class: "tl-derived" });
    const node = el(
      "div",
      { class: "tl-line", role: "option", id: `${context.id}-source-${i}`, "data-line": first + i },
      el("span", { class: "tl-no" }, String(first + i)),
      el("span", { class: "tl-text" }, record.text === "" ? " " : record.text),
      count,
    );
    return { node, count };
  });
  const body = el("div", { class: "tl-source-body", role: "listbox", tabindex: 0, "aria-label": text.sourceOf(name) });
  body.append(...rows.map((row) => row.node));
  const summary = el("summary", {}, text.sourceOf(name));
  const node = el("details", { class: "tl-source", open: true }, summary, body);

  let cursor = 0;
  const moveTo = (index: number): void => {
    rows[cursor]?.node.classList.remove("tl-current");
    cursor = Math.min(Math.max(index, 0), rows.length - 1);
    rows[cursor]?.node.classList.add("tl-current");
    body.setAttribute("aria-activedescendant", `${context.id}-source-${cursor}`);
    reveal(body, rows[cursor]!.node);
  };
  const select = (line: number): void => {
    const now = store.state.selection;
    const same = now?.kind === "source" && now.first === line && now.last === line;
    store.go({ selection: same ? null : { kind: "source", first: line, last: line } });
  };
  body.addEventListener("click", (event) => {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-line]");
    if (row === null || !document.getSelection()?.isCollapsed) return;
    moveTo(Number(row.dataset["line"]) - first);
    select(Number(row.dataset["line"]));
  });
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) moveTo(cursor + step);
    else if (event.key === "Enter") select(first + cursor);
    else return;
    event.preventDefault();
  });

  let counted = -1;
  const update = (state: State): void => {
    if (counted !== state.entry) {
      counted = state.entry;
      const counts = derivedCounts(trace.entries[state.entry]!);
      rows.forEach(({ count }, i) => {
        const n = state.entry === 0 ? 0 : (counts.get(first + i) ?? 0);
        count.textContent = n > 0 ? `→ ${n}` : "";
        count.title = n > 0 ? text.linked(n) : "";
      });
    }
    const selection = state.selection;
    let top: HTMLElement | null = null;
    rows.forEach(({ node: row }, i) => {
      const line = first + i;
      const lit = selection?.kind === "source" && selection.first <= line && line <= selection.last;
      row.classList.toggle("tl-linked", lit);
      row.setAttribute("aria-selected", String(lit));
      if (lit) top ??= row;
    });
    if (top !== null) reveal(body, top);
  };
  store.listen(update);
  update(store.state);
  return { node };
}
