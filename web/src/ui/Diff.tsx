/** The difference of one file, in one or two columns; or a unified diff as text where only that is known. */
import { useEffect, useRef } from "react";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import type { FileChange } from "../api/types";
import { appearance, readOnly } from "./codemirror";
import { Visible } from "./Visible";

const UNCHANGED = { margin: 2, minSize: 4 };

export default function Diff({ file, twoColumns }: { file: FileChange; twoColumns?: boolean }) {
  if (file.old === undefined || file.new === undefined || (file.old === null && file.new === null))
    return <TextDiff text={file.diff ?? ""} />;
  return <Merge path={file.path} old={file.old ?? ""} now={file.new ?? ""} twoColumns={twoColumns} />;
}

interface MergeProps {
  path: string;
  old: string;
  now: string;
  twoColumns?: boolean;
}

function Merge({ path, old, now, twoColumns }: MergeProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const parent = box.current!;
    const extensions = [...appearance(path, "Changes"), ...readOnly];
    if (twoColumns) {
      const view = new MergeView({
        parent,
        a: { doc: old, extensions },
        b: { doc: now, extensions },
        collapseUnchanged: UNCHANGED,
        gutter: false,
      });
      return () => view.destroy();
    }
    const unified = unifiedMergeView({
      original: old,
      mergeControls: false,
      collapseUnchanged: UNCHANGED,
      syntaxHighlightDeletions: true,
    });
    const state = EditorState.create({ doc: now, extensions: [...extensions, unified] });
    const view = new EditorView({ parent, state });
    return () => view.destroy();
  }, [path, old, now, twoColumns]);
  return <div className="diff" ref={box} />;
}

const LOOK: Record<string, string> = { "+": "add", "-": "del" };

export function TextDiff({ text }: { text: string }) {
  return (
    <pre className="pre flat difftext" tabIndex={0} aria-label="Changes">
      {text.split("\n").map((line, index) => (
        <div key={index} className={/^(\+\+\+|---)/.test(line) ? "dim" : LOOK[line[0]]}>
          <Visible text={line} />{" "}
        </div>
      ))}
    </pre>
  );
}
