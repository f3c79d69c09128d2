/** What a pass says of itself: its sentence, why it did nothing or failed, its notes and the rules that fired. */

import { type Context, type Part, SIGNS } from "./context.js";
import { button, el } from "./dom.js";
import type { Entry, Note } from "./payload.js";
import type { State } from "./state.js";

export function about(context: Context): Part {
  const { trace, store } = context;
  const node = el("section", { class: "tl-about" });
  const draw = (state: State): void => {
    const entry = trace.entries[state.entry]!;
    node.replaceChildren(title(context, entry), ...reason(context, entry), ...notes(context, entry), ...rules(context, entry));
  };
  store.listen((state, before) => {
    if (state.entry !== before.entry) draw(state);
  });
  draw(store.state);
  return { node };
}

function title({ text }: Context, entry: Entry): HTMLElement {
  return el(
    "div",
    { class: "tl-title" },
    el("h3", {}, `${entry.index} ${entry.name}`),
    el("span", { class: `tl-badge tl-is-${entry.status}` }, `${SIGNS[entry.status]} ${text.status[entry.status]}`),
    el("span", { class: "tl-doc" }, entry.doc),
  );
}

function reason({ text }: Context, entry: Entry): HTMLElement[] {
  if (entry.reason === "") return [];
  const labels: Partial<Record<string, string>> = {
    unchanged: text.whyUnchanged,
    skipped: text.whySkipped,
    failed: text.whyFailed,
  };
  const label = labels[entry.status];
  const node = el("p", { class: `tl-reason tl-is-${entry.status}` });
  if (label !== undefined) node.append(el("strong", {}, `${label}: `));
  node.append(entry.reason);
  return [node];
}

function notes(context: Context, entry: Entry): HTMLElement[] {
  if (entry.notes.length === 0) return [];
  const items = entry.notes.map((note) => noteItem(context, note));
  return [el("ul", { class: "tl-notes", "aria-label": context.text.notes }, ...items)];
}

function noteItem(context: Context, note: Note): HTMLElement {
  const kind = el("span", { class: `tl-kind tl-kind-${note.kind}` }, context.text.kinds[note.kind] ?? note.kind);
  const item = el("li", {}, kind, ` ${note.text} `);
  if (note.source !== null) item.append(lineLink(context, note.source));
  return item;
}

function lineLink({ store, text }: Context, line: number): HTMLElement {
  const select = (): void => store.go({ selection: { kind: "source", first: line, last: line } });
  return button({ class: "tl-link" }, text.line(line), select);
}

function rules(context: Context, entry: Entry): HTMLElement[] {
  if (entry.hits.length === 0) return [];
  const items = entry.hits.map((hit) => {
    const item = el("li", {}, el("code", {}, hit.rule), ": ", el("code", {}, hit.before), " → ", el("code", {}, hit.after), " ");
    if (hit.source !== null) item.append(lineLink(context, hit.source));
    return item;
  });
  const summary = el("summary", {}, context.text.rules(entry.hits.length));
  return [el("details", { class: "tl-rules" }, summary, el("ul", {}, ...items))];
}
