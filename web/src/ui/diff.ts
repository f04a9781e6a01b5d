/** A unified diff as rows: line numbers, what was removed and added, and which part of a line changed. */

export interface DiffLine {
  kind: "same" | "add" | "del" | "gap";
  old: number | null;
  now: number | null;
  text: string;
  /** The changed part of the text, from and to, where a line replaces another. */
  changed?: [number, number];
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Of a diff of several files, where the next one begins. */
const startsFile = (rows: string[], index: number) =>
  rows[index].startsWith("--- ") && !!rows[index + 1]?.startsWith("+++ ") && HUNK.test(rows[index + 2] ?? "");

export function parseDiff(text: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let old = 0;
  let now = 0;
  let inHunk = false;
  const rows = text.split("\n");
  for (const [index, line] of rows.entries()) {
    if (startsFile(rows, index)) {
      if (inHunk || rows.some((_, other) => other > index && startsFile(rows, other)))
        lines.push({ kind: "gap", old: null, now: null, text: rows[index + 1].slice(4) });
      inHunk = false;
    }
    const hunk = HUNK.exec(line);
    if (hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      if (inHunk || old > 1) lines.push({ kind: "gap", old: null, now: null, text: `line ${now}` });
      inHunk = true;
    } else if (!inHunk) {
      if (line && !line.startsWith("--- ") && !line.startsWith("+++ "))
        lines.push({ kind: "gap", old: null, now: null, text: line });
    } else if (line.startsWith("+")) lines.push({ kind: "add", old: null, now: now++, text: line.slice(1) });
    else if (line.startsWith("-")) lines.push({ kind: "del", old: old++, now: null, text: line.slice(1) });
    else if (line.startsWith("\\") || line.startsWith("("))
      lines.push({ kind: "gap", old: null, now: null, text: line });
    else if (line !== "") lines.push({ kind: "same", old: old++, now: now++, text: line.slice(1) });
  }
  markChanges(lines);
  return lines;
}

/** Of runs of removed and added lines of equal length, mark what differs within each pair. */
function markChanges(lines: DiffLine[]): void {
  let at = 0;
  while (at < lines.length) {
    const removed = run(lines, at, "del");
    const added = run(lines, at + removed, "add");
    if (removed && removed === added)
      for (let offset = 0; offset < removed; offset++) compare(lines[at + offset], lines[at + removed + offset]);
    at += removed + added || 1;
  }
}

function run(lines: DiffLine[], from: number, kind: DiffLine["kind"]): number {
  let length = 0;
  while (lines[from + length]?.kind === kind) length++;
  return length;
}

function compare(before: DiffLine, after: DiffLine): void {
  const [a, b] = [before.text, after.text];
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  before.changed = [start, a.length - end];
  after.changed = [start, b.length - end];
}

/** Rows for two columns: what was removed beside what was added. */
export function pairLines(lines: DiffLine[]): [DiffLine | null, DiffLine | null][] {
  const rows: [DiffLine | null, DiffLine | null][] = [];
  let at = 0;
  while (at < lines.length) {
    const removed = run(lines, at, "del");
    const added = run(lines, at + removed, "add");
    if (!removed && !added) {
      rows.push([lines[at], lines[at]]);
      at++;
      continue;
    }
    for (let offset = 0; offset < Math.max(removed, added); offset++)
      rows.push([offset < removed ? lines[at + offset] : null, offset < added ? lines[at + removed + offset] : null]);
    at += removed + added;
  }
  return rows;
}
