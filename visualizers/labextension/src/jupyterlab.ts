/** The parts of JupyterLab, Lumino and CodeMirror that the extension uses, as they are in JupyterLab 4.2 to 4.6. */

/** Webpack's share scope: for each package its versions, each with a loader of the module. */
export type ShareScope = Record<string, Record<string, { get(): Promise<() => unknown>; readonly loaded?: unknown }>>;

export interface MimeModel {
  readonly data: Readonly<Record<string, unknown>>;
  readonly trusted: boolean;
}

export interface RendererOptions {
  readonly mimeType: string;
  readonly sanitizer: { sanitize(html: string): string };
}

export interface WidgetClass {
  new (): { readonly node: HTMLElement; addClass(name: string): void };
}

export interface Lumino {
  readonly Widget: WidgetClass;
}

export interface Cell {
  readonly model: { readonly id: string; readonly sharedModel: { getSource(): string } };
  readonly editor: { readonly editor?: EditorView; injectExtension?(extension: unknown): void } | null;
}

export interface NotebookPanel {
  readonly node: HTMLElement;
  readonly content: { readonly widgets: readonly Cell[]; scrollToCell?(cell: Cell): Promise<void> };
}

export interface NotebookTracker {
  find(test: (panel: NotebookPanel) => boolean): NotebookPanel | undefined;
}

export interface NotebookModule {
  readonly INotebookTracker: unknown;
}

export interface EditorView {
  readonly state: {
    readonly doc: { readonly lines: number; line(n: number): { readonly from: number } };
    field(field: unknown, required: false): unknown;
  };
  dispatch(spec: { effects: unknown }): void;
  domAtPos(position: number): { readonly node: Node };
}

export interface EffectType {
  of(value: readonly number[]): unknown;
}

interface Effect {
  readonly value: readonly number[];
  is(type: EffectType): boolean;
}

interface Transaction {
  readonly effects: readonly Effect[];
  readonly docChanged: boolean;
  readonly state: EditorView["state"];
}

export interface StateModule {
  readonly StateEffect: { define(): EffectType };
  readonly StateField: {
    define(spec: {
      create(): unknown;
      update(value: unknown, transaction: Transaction): unknown;
      provide(field: unknown): unknown;
    }): unknown;
  };
}

export interface ViewModule {
  readonly Decoration: {
    readonly none: unknown;
    line(spec: { class: string }): { range(position: number): unknown };
    set(ranges: readonly unknown[]): unknown;
  };
  readonly EditorView: { readonly decorations: { from(field: unknown): unknown } };
}
