// Builds the JavaScript that the wheel ships: the standalone script and the JupyterLab extension.
// `npm ci && npm run build` in this folder rebuilds what is committed, byte for byte.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
// Where to write, for the test that compares a fresh build with the committed one.
const out = process.env.TILELAB_BUILD_OUT ?? here;

async function bundle(entry, options = {}) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    write: false,
    ...options,
  });
  return result.outputFiles[0].text;
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

write(join(out, "tilelab_viz/static/tilelab-core.js"), await bundle("core/src/standalone.ts"));

const extension = await bundle("labextension/src/container.ts");
const digest = createHash("sha256").update(extension).digest("hex").slice(0, 16);
const load = `static/remoteEntry.${digest}.js`;
const folder = join(out, "labextension/prebuilt");
rmSync(folder, { recursive: true, force: true });
write(join(folder, load), extension);
const manifest = JSON.parse(readFileSync(join(here, "labextension/package.json"), "utf8"));
manifest.jupyterlab._build = { load, extension: "./extension", mimeExtension: "./mimeExtension" };
write(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
