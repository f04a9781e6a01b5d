/** The look of CodeMirror, for the policy editor. Lines wrap and special characters are marked. */
import type { Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { nonce } from "./skin";

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--ac)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: tags.comment, color: "var(--tx-3)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--d-medium)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--ac)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "var(--tx)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--tx-3)", border: "0" },
  ".cm-content": { padding: "4px 0", caretColor: "var(--ac)" },
  "&.cm-focused": { outline: "2px solid var(--ac)", outlineOffset: "-2px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  ".cm-specialChar": { color: "var(--d-critical)", background: "var(--d-critical-bg)" },
  ".cm-tooltip": { background: "var(--bg-pop)", border: "1px solid var(--line-2)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--bg-sel)", color: "var(--tx)" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--d-critical-fill)", backgroundImage: "none" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--d-critical-fill)" },
});

// Bidi and zero-width characters beyond those that CodeMirror marks by itself.
const SPECIAL =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2069\u3164\ufe00-\ufe0f\uffa0\u{e0000}-\u{e0fff}]/gu;

export function appearance(path: string, name: string): Extension[] {
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightSpecialChars({ addSpecialChars: SPECIAL }),
    EditorView.lineWrapping,
    look,
    syntaxHighlighting(colours),
    yaml(),
    EditorView.contentAttributes.of({ "aria-label": `${name}: ${path}`, tabindex: "0" }),
  ];
}
