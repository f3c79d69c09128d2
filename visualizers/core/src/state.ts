/** The state of one view, and who hears of its changes. */

import type { Selection } from "./links.js";
import type { Mode } from "./rows.js";

export interface State {
  readonly entry: number;
  readonly mode: Mode;
  readonly hideUnchanged: boolean;
  readonly ignoreNoise: boolean;
  readonly filter: string;
  readonly query: string;
  readonly regex: boolean;
  readonly selection: Selection | null;
  /** Rows shown at the top of each fold of the current entry. */
  readonly expanded: ReadonlyMap<number, number>;
  readonly help: boolean;
}

export type Listener = (state: State, before: State) => void;

const KEPT: readonly (keyof State)[] = ["mode", "hideUnchanged", "ignoreNoise"];

/** Holds the state; `go` changes entry and selection and remembers where it came from. */
export class Store {
  private current: State;
  private readonly past: Pick<State, "entry" | "selection">[] = [];
  private readonly listeners: Listener[] = [];

  constructor(first: number, private readonly memory: Memory) {
    this.current = {
      entry: first,
      mode: "split",
      hideUnchanged: false,
      ignoreNoise: false,
      filter: "",
      query: "",
      regex: false,
      selection: null,
      expanded: new Map(),
      help: false,
      ...memory.load(),
    };
  }

  get state(): State {
    return this.current;
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  set(change: Partial<State>): void {
    const before = this.current;
    const moved = change.entry !== undefined && change.entry !== before.entry;
    this.current = { ...before, ...(moved ? { expanded: new Map() } : {}), ...change };
    if (KEPT.some((name) => name in change && this.current[name] !== before[name])) this.memory.save(this.current);
    for (const listener of this.listeners) listener(this.current, before);
  }

  go(change: Partial<Pick<State, "entry" | "selection">>): void {
    const { entry, selection } = this.current;
    this.past.push({ entry, selection });
    if (this.past.length > 100) this.past.shift();
    this.set(change);
  }

  back(): void {
    const last = this.past.pop();
    if (last !== undefined) this.set(last);
  }
}

/** Where the reader's choices are kept: one record for each notebook or page. */
export interface Memory {
  load(): Partial<State>;
  save(state: State): void;
}

/** Keeps the choices in the browser under the page's path; nothing where storage is not allowed. */
export function browserMemory(): Memory {
  const key = `tilelab.passes:${globalThis.location?.pathname ?? ""}`;
  return {
    load() {
      try {
        const found: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
        return pick(found as Partial<State>);
      } catch {
        return {};
      }
    },
    save(state) {
      try {
        localStorage.setItem(key, JSON.stringify(pick(state)));
      } catch {
        // Storage is a convenience: private windows and file pages may refuse it.
      }
    },
  };
}

function pick(state: Partial<State>): Partial<State> {
  return Object.fromEntries(KEPT.filter((name) => state[name] !== undefined).map((name) => [name, state[name]]));
}
