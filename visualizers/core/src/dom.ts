/** Small helpers around the DOM; text always goes in as text, never as markup. */

type Attributes = Record<string, string | number | boolean | undefined>;
type Child = Node | string | null;

/** An element with attributes and children; `class` and `aria-…` are attributes like any other. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child): child is Node | string => child !== null));
  return node;
}

/** A button of type button that runs `act` on click. */
export function button(attributes: Attributes, text: string, act: (event: MouseEvent) => void): HTMLButtonElement {
  const node = el("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", act);
  return node;
}

/** Scrolls `node` into its own scrolling pane without moving the page around it. */
export function reveal(pane: HTMLElement, node: HTMLElement, align: "near" | "center" = "near"): void {
  const outer = pane.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  if (align === "near" && inner.top >= outer.top && inner.bottom <= outer.bottom) return;
  pane.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
}

/** The text cut at the marks: pieces with and without a mark, in order. Offsets count characters, as Python does. */
export function pieces(text: string, marks: readonly (readonly [number, number])[]): [string, boolean][] {
  if (marks.length === 0) return [[text, false]];
  const cut = /[\ud800-\udfff]/.test(text) ? byCharacters(text) : (a: number, b?: number) => text.slice(a, b);
  const out: [string, boolean][] = [];
  let at = 0;
  for (const [start, end] of marks) {
    if (start > at) out.push([cut(at, start), false]);
    out.push([cut(start, end), true]);
    at = end;
  }
  const rest = cut(at);
  if (rest !== "") out.push([rest, false]);
  return out;
}

function byCharacters(text: string): (a: number, b?: number) => string {
  const characters = Array.from(text);
  return (a, b) => characters.slice(a, b).join("");
}
