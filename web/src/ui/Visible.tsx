/** Text from a call with every character in sight: invisible ones are named in place. */
import type { ReactNode } from "react";

// Control, bidi, zero-width, filler, variation and tag characters; tab and newline are drawn as they are.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

// Spaces other than the plain one, and runs of blanks long enough to push text off the screen.
const PADDING = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]| {16,}|\n{5,}/gu;

const NAMES: Record<string, string> = {
  "200b": "ZWSP",
  "200c": "ZWNJ",
  "200d": "ZWJ",
  "200e": "LRM",
  "200f": "RLM",
  "202a": "LRE",
  "202b": "RLE",
  "202c": "PDF",
  "202d": "LRO",
  "202e": "RLO",
  "2066": "LRI",
  "2067": "RLI",
  "2068": "FSI",
  "2069": "PDI",
  "00ad": "SHY",
  feff: "BOM",
  "001b": "ESC",
  "0000": "NUL",
};

// Letters of other scripts that pass for Latin ones, beside Latin ones in the same word.
const MIXED =
  /(?=[\p{L}\p{N}]*[a-z])(?=[\p{L}\p{N}]*[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}])[\p{L}\p{N}]+/giu;
const FOREIGN = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;

const hex = (character: string) => character.codePointAt(0)!.toString(16).padStart(4, "0");

const textOf = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

export function countHidden(value: unknown): number {
  return textOf(value).match(HIDDEN)?.length ?? 0;
}

interface Mark {
  at: number;
  length: number;
  node: ReactNode;
}

function hiddenMarks(text: string): Mark[] {
  return [...text.matchAll(HIDDEN)].map((match) => {
    const code = hex(match[0]);
    const title = `U+${code.toUpperCase()}, an invisible character`;
    const node = (
      <span key={match.index} className="inv" title={title}>
        {NAMES[code] ?? `U+${code.toUpperCase()}`}
      </span>
    );
    return { at: match.index, length: match[0].length, node };
  });
}

function paddingMarks(text: string): Mark[] {
  return [...text.matchAll(PADDING)].map((match) => {
    const run = match[0];
    const name = run.startsWith("\n")
      ? `${run.length} line breaks`
      : run.length > 1
        ? `${run.length} spaces`
        : `U+${hex(run).toUpperCase()}`;
    const node = (
      <span key={`p${match.index}`} className="inv" title="Blank space that could hide what follows">
        {name}
      </span>
    );
    return { at: match.index, length: run.length, node: run.startsWith("\n") ? [node, "\n"] : node };
  });
}

function lookAlikeMarks(text: string): Mark[] {
  const marks: Mark[] = [];
  for (const word of text.matchAll(MIXED)) {
    for (const [offset, character] of [...word[0]].entries()) {
      if (!FOREIGN.test(character)) continue;
      const code = hex(character).toUpperCase();
      const node = (
        <span key={`l${word.index + offset}`} className="inv" title={`U+${code}, a letter of another script`}>
          {character} U+{code}
        </span>
      );
      marks.push({ at: word.index + offset, length: character.length, node });
    }
  }
  return marks;
}

export function Visible({ text }: { text: string }) {
  const marks = [...hiddenMarks(text), ...paddingMarks(text), ...lookAlikeMarks(text)].sort((a, b) => a.at - b.at);
  const out: ReactNode[] = [];
  let at = 0;
  for (const mark of marks) {
    if (mark.at < at) continue;
    out.push(text.slice(at, mark.at), mark.node);
    at = mark.at + mark.length;
  }
  out.push(text.slice(at));
  return <>{out}</>;
}

/** A sentence of the server, with `code` marks. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, index) =>
        index % 2 ? (
          <code key={index}>
            <Visible text={part} />
          </code>
        ) : (
          <Visible key={index} text={part} />
        ),
      )}
    </>
  );
}
