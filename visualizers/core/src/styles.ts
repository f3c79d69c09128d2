/** The style sheet of the views. Colours come from JupyterLab's variables, with fallbacks for other pages. */

// Blue and orange stay apart in the common forms of colour blindness; every colour has a sign beside it.
const VARIABLES = `
.tl-view {
  --tl-paper: var(--jp-layout-color0, #fff);
  --tl-panel: var(--jp-layout-color1, #f7f8fa);
  --tl-raised: var(--jp-layout-color2, #eceff2);
  --tl-ink: var(--jp-content-font-color0, #16191d);
  --tl-soft: color-mix(in srgb, var(--tl-ink) 72%, var(--tl-paper));
  --tl-line: var(--jp-border-color2, #d4d9df);
  --tl-focus: var(--jp-brand-color1, #0b62b8);
  --tl-sans: var(--jp-ui-font-family, system-ui, sans-serif);
  --tl-mono: var(--jp-code-font-family, ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace);
  --tl-add: color-mix(in srgb, #0072b2 13%, transparent);
  --tl-add-word: color-mix(in srgb, #0072b2 34%, transparent);
  --tl-del: color-mix(in srgb, #d55e00 12%, transparent);
  --tl-del-word: color-mix(in srgb, #d55e00 34%, transparent);
  --tl-lit: color-mix(in srgb, #e6b800 22%, transparent);
  --tl-lit-edge: #c08a00;
  --tl-blue: #0069a6;
  --tl-orange: #ad4500;
}
[data-jp-theme-light="false"] .tl-view {
  --tl-add: color-mix(in srgb, #3aa0e0 22%, transparent);
  --tl-add-word: color-mix(in srgb, #3aa0e0 48%, transparent);
  --tl-del: color-mix(in srgb, #f08030 20%, transparent);
  --tl-del-word: color-mix(in srgb, #f08030 46%, transparent);
  --tl-lit: color-mix(in srgb, #ffd84a 22%, transparent);
  --tl-lit-edge: #ffd84a;
}
@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light]) .tl-view {
    --tl-paper: #15181c; --tl-panel: #1c2025; --tl-raised: #272c33; --tl-ink: #eceff3; --tl-line: #3a414a;
    --tl-focus: #6cb6ff;
    --tl-add: color-mix(in srgb, #3aa0e0 22%, transparent);
    --tl-add-word: color-mix(in srgb, #3aa0e0 48%, transparent);
    --tl-del: color-mix(in srgb, #f08030 20%, transparent);
    --tl-del-word: color-mix(in srgb, #f08030 46%, transparent);
    --tl-lit: color-mix(in srgb, #ffd84a 22%, transparent);
    --tl-lit-edge: #ffd84a;
  }
}`;

const FRAME = `
.tl-view { container-type: inline-size; font: 13px/1.45 var(--tl-sans); color: var(--tl-ink); background: var(--tl-paper);
  border: 1px solid var(--tl-line); border-radius: 6px; position: relative; text-align: left; }
.tl-view * { box-sizing: border-box; }
.tl-view [hidden] { display: none !important; }
.tl-view h2, .tl-view h3, .tl-view h4, .tl-view p, .tl-view ul, .tl-view dl { margin: 0; padding: 0; }
.tl-view h2 { font-size: 16px; font-weight: 650; } .tl-view h3 { font-size: 14px; font-weight: 650; font-family: var(--tl-mono); }
.tl-view h4 { font-size: 12px; padding: 4px 8px; color: var(--tl-soft); }
.tl-view code, .tl-view kbd { font: 12px var(--tl-mono); background: none; color: inherit; padding: 0; border: 0; }
.tl-view :focus-visible { outline: 2px solid var(--tl-focus); outline-offset: -2px; }
.tl-view button, .tl-view select, .tl-view input[type=search] { font: inherit; font-size: 12px; color: inherit;
  background: var(--tl-paper); border: 1px solid var(--tl-line); border-radius: 4px; padding: 2px 8px; height: 24px; }
.tl-view button { cursor: pointer; } .tl-view button:hover:not(:disabled) { background: var(--tl-raised); }
.tl-view button:disabled { opacity: .5; cursor: default; }
.tl-view button.tl-link { border: 0; background: none; padding: 0 2px; height: auto; text-decoration: underline; color: inherit; }
.tl-view input[type=checkbox] { margin: 0 4px 0 0; vertical-align: -2px; accent-color: var(--tl-blue); }
.tl-view label { font-size: 12px; white-space: nowrap; }
.tl-header { padding: 8px 12px; background: var(--tl-panel); border-bottom: 1px solid var(--tl-line); }
.tl-head, .tl-sub, .tl-toolbar, .tl-title { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.tl-sub { margin-top: 3px; font-size: 12px; color: var(--tl-soft); justify-content: space-between; }
.tl-target { border: 1px solid var(--tl-line) !important; border-radius: 4px; padding: 0 6px !important; }
.tl-summary { color: var(--tl-soft); } .tl-space { flex: 1; } .tl-call { overflow-wrap: anywhere; }
.tl-note { padding: 6px 12px !important; border-left: 3px solid var(--tl-orange); background: var(--tl-panel); }
.tl-stale { border-left: 3px solid var(--tl-orange); padding-left: 6px; }
.tl-columns { display: grid; grid-template-columns: 244px minmax(0, 1fr); height: min(76vh, 700px); }
.tl-right { display: flex; flex-direction: column; min-height: 0; }
.tl-main { display: flex; flex-direction: column; min-height: 0; flex: 1; }
.tl-live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.tl-help { padding: 8px 12px; border-bottom: 1px solid var(--tl-line); background: var(--tl-raised); }
.tl-help dl { display: grid; grid-template-columns: max-content 1fr max-content 1fr; gap: 2px 14px; }
.tl-help dd { margin: 0; } .tl-unread { overflow: auto; }
@container (max-width: 640px) {
  .tl-columns { grid-template-columns: minmax(0, 1fr); height: auto; }
  .tl-list { max-height: 190px; border-right: 0 !important; border-bottom: 1px solid var(--tl-line); }
  .tl-program { max-height: 480px; } .tl-help dl { grid-template-columns: max-content 1fr; }
}`;

const LISTS = `
.tl-list { display: flex; flex-direction: column; min-height: 0; border-right: 1px solid var(--tl-line); background: var(--tl-panel); }
.tl-list-controls { display: flex; flex-wrap: wrap; gap: 5px 8px; align-items: center; padding: 8px; border-bottom: 1px solid var(--tl-line); }
.tl-list-controls input[type=search] { width: 100%; } .tl-count { margin-left: auto; font-size: 12px; color: var(--tl-soft); }
.tl-passes { list-style: none; overflow-y: auto; flex: 1; }
.tl-pass { display: grid; grid-template-columns: 24px minmax(0, 1fr) auto; gap: 0 6px; padding: 4px 8px 4px 4px; cursor: pointer;
  border-left: 3px solid transparent; content-visibility: auto; contain-intrinsic-size: auto 42px; list-style: none; }
.tl-pass:hover { background: var(--tl-raised); }
.tl-pass[aria-selected=true] { background: var(--tl-raised); border-left-color: var(--tl-focus); }
.tl-index { text-align: right; color: var(--tl-soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.tl-name { font: 12.5px var(--tl-mono); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; align-self: center; }
.tl-is-changed > .tl-name, .tl-is-failed > .tl-name { font-weight: 650; }
.tl-badge { font-size: 11px; line-height: 16px; border-radius: 8px; padding: 0 7px; border: 1px solid var(--tl-line); white-space: nowrap; align-self: center; }
.tl-badge.tl-is-changed { background: var(--tl-blue); border-color: var(--tl-blue); color: #fff; }
.tl-badge.tl-is-failed { background: var(--tl-orange); border-color: var(--tl-orange); color: #fff; }
.tl-badge.tl-is-unchanged, .tl-badge.tl-is-skipped { color: var(--tl-soft); } .tl-badge.tl-is-skipped { border-style: dashed; }
.tl-meta { grid-column: 2 / 4; display: flex; gap: 7px; white-space: nowrap; font-size: 11px; color: var(--tl-soft); font-variant-numeric: tabular-nums; }
.tl-delta { margin-left: auto; color: var(--tl-ink); } .tl-chip { color: var(--tl-ink); background: var(--tl-lit); border-radius: 3px; padding: 0 4px; }
.tl-search { position: relative; display: flex; gap: 6px; align-items: center; } .tl-search input[type=search] { width: 190px; }
.tl-search-status { font-size: 12px; color: var(--tl-soft); }
.tl-results { position: absolute; z-index: 5; top: 28px; right: 0; width: min(640px, 90cqw); max-height: 340px; overflow: auto;
  background: var(--tl-paper); border: 1px solid var(--tl-line); border-radius: 6px; box-shadow: 0 6px 24px rgb(0 0 0 / .25); padding: 4px 0; }
.tl-view button.tl-result { display: block; width: 100%; text-align: left; border: 0; border-radius: 0; font: 12px var(--tl-mono);
  white-space: pre; overflow: hidden; text-overflow: ellipsis; }
.tl-view button.tl-result.tl-current { background: var(--tl-lit); }`;

const PROGRAM = `
.tl-source { border-bottom: 1px solid var(--tl-line); background: var(--tl-panel); }
.tl-source > summary { padding: 3px 10px; font-size: 12px; color: var(--tl-soft); cursor: pointer; }
.tl-source-body { max-height: 172px; overflow: auto; background: var(--tl-paper); padding-bottom: 3px; }
.tl-line { display: flex; font: 12px/18px var(--tl-mono); cursor: pointer; padding-right: 10px; border-left: 3px solid transparent; }
.tl-line .tl-text { flex: 1; white-space: pre; } .tl-derived { color: var(--tl-soft); font-size: 11px; user-select: none; white-space: nowrap; padding-left: 12px; }
.tl-line:hover, .tl-row:hover > .tl-cell { box-shadow: inset 0 0 0 100px color-mix(in srgb, var(--tl-ink) 5%, transparent); }
.tl-no { width: 34px; flex: none; text-align: right; padding-right: 8px; color: var(--tl-soft); user-select: none; font-variant-numeric: tabular-nums; }
.tl-about { padding: 8px 12px 4px; max-height: 172px; overflow-y: auto; flex: none; } .tl-doc { color: var(--tl-soft); }
.tl-reason { margin-top: 4px !important; padding: 4px 10px !important; border-left: 3px solid var(--tl-line); white-space: pre-line; }
.tl-reason.tl-is-failed { border-left-color: var(--tl-orange); background: var(--tl-del); }
.tl-view ul.tl-notes, .tl-rules ul { margin: 4px 0 0; list-style: none; display: grid; gap: 2px; } .tl-notes li, .tl-rules li { list-style: none; }
.tl-kind { display: inline-block; font-size: 11px; border: 1px solid var(--tl-line); border-radius: 3px; padding: 0 5px; min-width: 62px; text-align: center; }
.tl-kind-refusal { border-style: dashed; } .tl-kind-slow_path { border-color: var(--tl-orange); box-shadow: inset 3px 0 0 var(--tl-orange); }
.tl-kind-decision { box-shadow: inset 3px 0 0 var(--tl-blue); } .tl-rules { margin-top: 4px; } .tl-rules summary { cursor: pointer; }
.tl-toolbar { padding: 5px 12px; border-bottom: 1px solid var(--tl-line); flex: none; }
.tl-group { display: inline-flex; } .tl-group button { border-radius: 0; margin-left: -1px; }
.tl-group button:first-child { border-radius: 4px 0 0 4px; } .tl-group button:last-child { border-radius: 0 4px 4px 0; }
.tl-view .tl-group button[aria-checked=true] { background: var(--tl-blue); border-color: var(--tl-blue); color: #fff; }
.tl-steps { display: inline-flex; gap: 3px; align-items: center; } .tl-steps button { padding: 2px 6px; }
.tl-changes { font-size: 12px; color: var(--tl-soft); min-width: 66px; }
.tl-selection { padding: 2px 12px; font-size: 12px; background: var(--tl-lit); display: flex; gap: 10px; flex: none; }
.tl-program { overflow: auto; flex: 1; min-height: 120px; font: 12px/18px var(--tl-mono); }
.tl-block { content-visibility: auto; contain-intrinsic-size: auto calc(var(--tl-rows) * 18px); }
.tl-row { display: grid; grid-template-columns: minmax(0, 1fr); cursor: pointer; }
.tl-row.tl-two { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } .tl-two > .tl-cell:first-child { border-right: 1px solid var(--tl-line); }
.tl-cell { display: flex; border-left: 3px solid transparent; min-height: 18px; }
.tl-cell .tl-text { white-space: pre-wrap; overflow-wrap: anywhere; flex: 1; padding: 0 6px 0 var(--tl-hang); text-indent: calc(-1 * var(--tl-hang)); }
.tl-src { width: 34px; flex: none; color: var(--tl-soft); font-size: 10.5px; user-select: none; white-space: nowrap; overflow: hidden; }
.tl-sign { width: 14px; flex: none; user-select: none; white-space: pre; font-weight: 700; }
.tl-add { background: var(--tl-add); } .tl-del { background: var(--tl-del); }
.tl-cell ins { background: var(--tl-add-word); text-decoration: none; border-radius: 2px; }
.tl-cell del { background: var(--tl-del-word); text-decoration: none; border-radius: 2px; }
.tl-empty { background: repeating-linear-gradient(135deg, transparent 0 5px, color-mix(in srgb, var(--tl-line) 40%, transparent) 5px 6px); }
.tl-cell.tl-linked, .tl-line.tl-linked { border-left-color: var(--tl-lit-edge); background-image: linear-gradient(var(--tl-lit), var(--tl-lit)); }
.tl-row.tl-current, .tl-line.tl-current, .tl-fold.tl-current { box-shadow: inset 0 0 0 1px var(--tl-focus); }
.tl-fold > div { padding: 1px 12px 1px 60px; color: var(--tl-soft); background: var(--tl-panel); border-block: 1px solid var(--tl-line);
  font: 12px/18px var(--tl-sans); display: flex; gap: 12px; }
.cm-line.tilelab-cell-line { background-color: rgb(230 184 0 / .22); box-shadow: inset 3px 0 0 #c08a00; }
@media (forced-colors: active) { .tl-cell ins, .tl-cell del { text-decoration: underline; } .tl-linked { outline: 1px dashed; } }
@media (prefers-reduced-motion: no-preference) { .tl-pass { transition: background-color .08s; } }`;

const ID = "tilelab-view-styles";

/** Adds the style sheet to the document once. */
export function addStyles(document: Document): void {
  if (document.getElementById(ID) !== null) return;
  const node = document.createElement("style");
  node.id = ID;
  node.textContent = [VARIABLES, FRAME, LISTS, PROGRAM].join("\n");
  document.head.append(node);
}
