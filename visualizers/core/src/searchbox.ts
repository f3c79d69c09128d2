/** The search over all passes: results grouped by pass; Enter goes to the first, and on to the next. */

import type { Context, Part } from "./context.js";
import { button, el } from "./dom.js";
import { type Found, searchRegex, type SearchResult, searchText } from "./search.js";

export interface SearchPart extends Part {
  focus(): void;
}

export function searchBox(context: Context, show: (entry: number, line: number) => void): SearchPart {
  const { trace, store, text } = context;
  const input = el("input", { type: "search", placeholder: text.search, "aria-label": text.search });
  const regex = el("input", { type: "checkbox", "aria-label": text.regex });
  const status = el("span", { class: "tl-search-status", role: "status" });
  const list = el("div", { class: "tl-results", hidden: true });
  const node = el("div", { class: "tl-search" }, input, el("label", { title: text.regex }, regex, ".*"), status, list);
  let hits: readonly Found[] = [];
  let at = -1;
  let latest = 0;

  const draw = (result: SearchResult | null): void => {
    hits = result?.kind === "found" ? result.hits : [];
    at = -1;
    list.hidden = hits.length === 0;
    const passes = new Set(hits.map((hit) => hit.entry));
    status.textContent = message(context, result, passes.size);
    const groups = [...passes].map((entry) => group(entry, hits));
    list.replaceChildren(...groups);
    if (result?.kind === "found" && result.total > hits.length) list.append(text.moreResults(result.total - hits.length));
  };
  const group = (entry: number, found: readonly Found[]): HTMLElement => {
    const items = found.flatMap((hit, i) =>
      hit.entry !== entry ? [] : [button({ class: "tl-result" }, `${hit.line + 1}  ${hit.text}`, () => jump(i))],
    );
    return el("section", {}, el("h4", {}, `${entry} ${trace.entries[entry]!.name} (${items.length})`), ...items);
  };
  const jump = (index: number): void => {
    at = (index + hits.length) % hits.length;
    const hit = hits[at]!;
    show(hit.entry, hit.line);
    list.querySelectorAll(".tl-result").forEach((item, i) => item.classList.toggle("tl-current", i === at));
  };
  const run = async (): Promise<void> => {
    const mine = ++latest;
    const query = input.value;
    store.set({ query, regex: regex.checked });
    const result = query === "" ? null : regex.checked ? await searchRegex(trace, query) : searchText(trace, query);
    if (mine === latest) draw(result);
  };
  input.addEventListener("input", () => void run());
  regex.addEventListener("change", () => void run());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length > 0) {
      event.preventDefault();
      jump(at + (event.shiftKey ? -1 : 1));
    } else if (event.key === "Escape" && input.value !== "") {
      event.stopPropagation();
      input.value = "";
      void run();
    }
  });
  return { node, focus: () => input.focus() };
}

function message({ text }: Context, result: SearchResult | null, passes: number): string {
  if (result === null) return "";
  if (result.kind === "invalid") return text.badPattern(result.message);
  if (result.kind === "slow") return text.slowPattern;
  return result.total === 0 ? text.noResults : text.results(result.total, passes);
}
