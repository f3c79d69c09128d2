/**
 * The entry that JupyterLab loads: a module container with the two methods that its loader calls.
 *
 * `init` receives the packages that JupyterLab shares, `get` gives a factory of one of our two modules. Written out
 * by hand it is thirty lines, takes whatever version of a package the running JupyterLab has (4.2 to 4.6 differ), and
 * needs neither webpack nor JupyterLab's build tools.
 */

import type { Lumino, NotebookModule, ShareScope, StateModule, ViewModule } from "./jupyterlab.js";
import { editorPlugin } from "./editor.js";
import { mimeExtension } from "./mime.js";

let scope: ShareScope | null = null;

async function shared<T>(name: string): Promise<T> {
  const versions = Object.values(scope?.[name] ?? {});
  // Other extensions may offer copies of their own; the one in use is the one that JupyterLab's parts know.
  const entry = versions.find((version) => version.loaded) ?? versions[0];
  if (entry === undefined) throw new Error(`tilelab: this JupyterLab does not share ${name}`);
  return (await entry.get())() as T;
}

const MODULES: Record<string, () => Promise<unknown>> = {
  "./mimeExtension": async () => mimeExtension((await shared<Lumino>("@lumino/widgets")).Widget),
  "./extension": async () => {
    const [notebook, state, view] = await Promise.all([
      shared<NotebookModule>("@jupyterlab/notebook"),
      shared<StateModule>("@codemirror/state"),
      shared<ViewModule>("@codemirror/view"),
    ]);
    return editorPlugin(notebook.INotebookTracker, state, view);
  },
};

const container = {
  init(sharedScope: ShareScope): void {
    scope = sharedScope;
  },
  async get(name: string): Promise<() => unknown> {
    const make = MODULES[name];
    if (make === undefined) throw new Error(`tilelab has no module ${name}`);
    const made = { __esModule: true, default: await make() };
    return () => made;
  },
};

const registry = globalThis as unknown as { _JUPYTERLAB?: Record<string, unknown> };
(registry._JUPYTERLAB ??= {})["tilelab"] = container;
