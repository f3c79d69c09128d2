/** The keys of the view. They act only while it has the focus, and letters only outside text fields. */

export interface Actions {
  pass(step: number): void;
  change(step: number): void;
  toggleUnchanged(): void;
  nextMode(): void;
  search(): void;
  help(): void;
  back(): void;
  escape(): void;
}

export function bindKeys(root: HTMLElement, actions: Actions): void {
  const plain: Record<string, () => void> = {
    j: () => actions.pass(1),
    k: () => actions.pass(-1),
    n: () => actions.change(1),
    p: () => actions.change(-1),
    u: () => actions.toggleUnchanged(),
    s: () => actions.nextMode(),
    "/": () => actions.search(),
    "?": () => actions.help(),
  };
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") actions.escape();
    else if (event.altKey && event.key === "ArrowLeft") actions.back();
    else if (event.altKey || event.ctrlKey || event.metaKey || isTyping(event.target)) return;
    else if (plain[event.key] !== undefined) plain[event.key]!();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}
