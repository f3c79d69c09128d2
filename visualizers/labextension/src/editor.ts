/** The plugin that shows selected source lines in the notebook's own cell. */

import { SOURCE_EVENT, type SourceDetail } from "../../core/src/index.js";
import type { Cell, EditorView, EffectType, NotebookPanel, NotebookTracker, StateModule, ViewModule } from "./jupyterlab.js";

const LINE_CLASS = "tilelab-cell-line";

export function editorPlugin(tracker: unknown, state: StateModule, view: ViewModule): unknown {
  return {
    id: "tilelab:source-lines",
    description: "Lights the lines of a cell that a selected line of a compiler view comes from.",
    autoStart: true,
    requires: [tracker],
    activate: (_app: unknown, notebooks: NotebookTracker): void => {
      const { field, effect } = lineMarks(state, view);
      document.addEventListener(SOURCE_EVENT, (event) => {
        const panel = notebooks.find((candidate) => candidate.node.contains(event.target as Node));
        if (panel !== undefined) void follow(panel, (event as CustomEvent<SourceDetail>).detail, field, effect);
      });
    },
  };
}

/** A CodeMirror field that holds the lit lines; an edit puts them out, since it may move them. */
function lineMarks(state: StateModule, view: ViewModule): { field: unknown; effect: EffectType } {
  const effect = state.StateEffect.define();
  const mark = view.Decoration.line({ class: LINE_CLASS });
  const field = state.StateField.define({
    create: () => view.Decoration.none,
    update(value, transaction) {
      const set = transaction.effects.find((e) => e.is(effect));
      if (set !== undefined) {
        const { doc } = transaction.state;
        const lines = set.value.filter((n) => n >= 1 && n <= doc.lines);
        return view.Decoration.set(lines.map((n) => mark.range(doc.line(n).from)));
      }
      return transaction.docChanged ? view.Decoration.none : value;
    },
    provide: (made) => view.EditorView.decorations.from(made),
  });
  return { field, effect };
}

async function follow(panel: NotebookPanel, detail: SourceDetail, field: unknown, effect: EffectType): Promise<void> {
  for (const cell of panel.content.widgets) light(cell, [], field, effect);
  if (detail.range === null) return;
  const found = findCell(panel.content.widgets, detail);
  if (found === null) {
    if (isCell(detail)) detail.stale();
    return;
  }
  const [first, last] = detail.range;
  const lines: number[] = [];
  for (let n = first; n <= last; n++) lines.push(n - detail.first_line + found.offset + 1);
  const editor = light(found.cell, lines, field, effect);
  if (editor === null) return;
  const at = editor.domAtPos(editor.state.doc.line(Math.min(lines[0]!, editor.state.doc.lines)).from).node;
  const element = at instanceof HTMLElement ? at : at.parentElement;
  element?.scrollIntoView({ block: "nearest" });
}

/** The cell that holds the kernel's text as it was compiled, and the number of lines before it in the cell. */
function findCell(cells: readonly Cell[], detail: SourceDetail): { cell: Cell; offset: number } | null {
  const wanted = detail.lines.join("\n").trimEnd();
  // The named cell first; a name that this notebook does not know leaves the text to decide.
  const ordered = [...cells].sort((a, b) => Number(b.model.id === detail.cell) - Number(a.model.id === detail.cell));
  for (const cell of ordered) {
    const text = cell.model.sharedModel.getSource();
    const at = text.indexOf(wanted);
    if (at >= 0) return { cell, offset: text.slice(0, at).split("\n").length - 1 };
  }
  return null;
}

/** Whether the source was a notebook's cell: the kernel keeps those in files of its own. */
function isCell(detail: SourceDetail): boolean {
  return detail.cell !== null || /ipykernel_|<ipython-input/.test(detail.file);
}

function light(cell: Cell, lines: readonly number[], field: unknown, effect: EffectType): EditorView | null {
  const editor = cell.editor?.editor;
  if (editor === undefined) return null;
  if (editor.state.field(field, false) === undefined) {
    if (lines.length === 0) return editor;
    cell.editor?.injectExtension?.(field);
  }
  editor.dispatch({ effects: effect.of(lines) });
  return editor;
}
