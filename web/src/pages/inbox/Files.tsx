/** The files a call changes: a checklist where parts can be left out, and the difference of one. */
import { useState } from "react";
import { IconColumns1, IconColumns2 } from "@tabler/icons-react";
import type { FileChange } from "../../api/types";
import { Diff } from "../../ui/Diff";
import { relativePath } from "../../ui/format";
import { Visible } from "../../ui/Visible";
import s from "./Inbox.module.css";

interface Props {
  files: FileChange[];
  workspace: string;
  keep?: Set<string>;
  setKeep?: (keep: Set<string>) => void;
  twoColumns: boolean;
  setTwoColumns: (two: boolean) => void;
  title?: string;
}

export function Files({ files, workspace, keep, setKeep, twoColumns, setTwoColumns, title }: Props) {
  const [at, setAt] = useState(0);
  const file = files[at] ?? files[0];
  const added = files.reduce((sum, each) => sum + (each.add ?? 0), 0);
  const removed = files.reduce((sum, each) => sum + (each.del ?? 0), 0);
  const list = keep && setKeep;
  return (
    <section className="card mt16" aria-label="Changes">
      <header>
        {list ? (
          <>
            <input
              className="ck"
              type="checkbox"
              aria-label="All files"
              checked={keep.size === files.length}
              onChange={(event) => setKeep(new Set(event.target.checked ? files.map((each) => each.path) : []))}
            />
            <span className="b">{title ?? `Keep ${keep.size} of ${files.length} changes`}</span>
          </>
        ) : (
          <code title={file.path}>
            <Visible text={relativePath(file.path, workspace)} />
          </code>
        )}
        <Lines add={added} del={removed} unit />
        <button className="bt sm ghost right no-phone" onClick={() => setTwoColumns(!twoColumns)}>
          {twoColumns ? <IconColumns1 aria-hidden /> : <IconColumns2 aria-hidden />}
          {twoColumns ? "One column" : "Two columns"}
          <kbd>V</kbd>
        </button>
      </header>
      {(list || files.length > 1) && (
        <ul>
          {files.map((each, index) => (
            <li key={each.path} className={s.fl} aria-current={each === file ? "true" : undefined}>
              {list ? <Keep path={each.path} keep={keep} setKeep={setKeep} /> : <span />}
              <button className={`${s.name} cut`} onClick={() => setAt(index)}>
                <Visible text={relativePath(each.path, workspace)} />
                {each.kind !== "change" && <span className="tag ml">{each.kind}</span>}
              </button>
              <Lines add={each.add} del={each.del} />
            </li>
          ))}
        </ul>
      )}
      {file.diff ? (
        <Diff key={file.path} text={file.diff} twoColumns={twoColumns} />
      ) : (
        <p className="pad dim sm">The content of this change is not text, or is not known before the call runs.</p>
      )}
    </section>
  );
}

function Keep({ path, keep, setKeep }: { path: string; keep: Set<string>; setKeep: (keep: Set<string>) => void }) {
  const change = (checked: boolean) => {
    const next = new Set(keep);
    if (checked) next.add(path);
    else next.delete(path);
    setKeep(next);
  };
  return (
    <input
      type="checkbox"
      aria-label={`Keep ${path}`}
      checked={keep.has(path)}
      onChange={(event) => change(event.target.checked)}
    />
  );
}

export function Lines({ add, del, unit }: { add: number | null; del: number | null; unit?: boolean }) {
  if (add === null || del === null) return null;
  return (
    <span className="pm">
      <span className="p">+{add}</span> <span className="m">−{del}</span>
      {unit && <span className="dim"> lines</span>}
    </span>
  );
}
