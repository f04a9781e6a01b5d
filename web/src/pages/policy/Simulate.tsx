/** The policy file: edited, checked as it is typed, replayed against the calls on record, and then saved. */
import { Fragment, type ReactNode, useEffect, useState } from "react";
import { Link, useSearch } from "wouter";
import { post, Problem, put } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import { Diff } from "../../ui/Diff";
import { count, int } from "../../ui/format";
import { Loading } from "../../ui/states";
import { Decided } from "../../ui/signs";
import { Visible } from "../../ui/Visible";
import { PolicyEditor } from "./PolicyEditor";
import type { ChangedCall, Check, PolicyFile, Simulation } from "./types";
import s from "./Policy.module.css";

const EMPTY = "version: 1\nrules:\n";
const EXAMPLE = `  - id: tests-are-free
    tool: [edit_file, write_file]
    target: {under: tests}
    decision: allow
`;

const CHECK_MS = 200;

/** Without the right to save, a draft can still be replayed. */
export default function Simulate() {
  const file = useQuery<PolicyFile>("/policy/file");
  const added = new URLSearchParams(useSearch()).get("add");
  if (!file.data && !file.error) return <Loading />;
  return <Draft key={file.data?.version} file={file.data} added={added} />;
}

function firstDraft(file: PolicyFile | undefined, added: string | null): string {
  const text = file?.text.trim() ? file.text : EMPTY + (added ? "" : EXAMPLE);
  if (!added) return text;
  return `${text.replace(/^rules:[ \t]*\[[ \t]*\]/m, "rules:").trimEnd()}\n${added}\n`;
}

function Draft({ file, added }: { file: PolicyFile | undefined; added: string | null }) {
  const [draft, setDraft] = useState(() => firstDraft(file, added));
  const check = useCheck(draft);
  const [result, setResult] = useState<Simulation | Problem>();
  const [replayed, setReplayed] = useState<string>();
  const [running, setRunning] = useState(false);
  const work = async (action: () => Promise<void>) => {
    setRunning(true);
    try {
      await action();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setResult(problem);
    } finally {
      setRunning(false);
    }
  };
  const replay = async () => {
    setResult(await post<Simulation>("/policy/simulate", { policy: draft }));
    setReplayed(draft);
  };
  const save = async () => {
    await put("/policy", { policy: draft, version: file?.version });
    invalidate("/policy", "/status");
  };
  return (
    <div className={s.sim}>
      <section className="card">
        <header>
          <code title={file?.path}>policy.yaml</code>
          {check && (
            <span className={`tag ${check.ok ? "ok" : "bad"}`}>
              {check.ok ? `${count(check.rules, "rule")}, valid` : count(check.problems.length, "problem")}
            </span>
          )}
        </header>
        <PolicyEditor text={draft} change={setDraft} diagnostics={check?.problems ?? []} />
        {check && !check.ok && (
          <ul className="in-pad col gap4" aria-label="Problems">
            {check.problems.map((problem, index) => (
              <li key={index} className="red sm">
                {problem.line ? `line ${problem.line}: ` : ""}
                <Visible text={[problem.key, problem.problem, problem.fix].filter(Boolean).join(": ")} />
              </li>
            ))}
          </ul>
        )}
        <footer className="row">
          <span className="dim sm">
            {file && draft === file.text
              ? "This is the policy in force."
              : "A draft. Replay it, look at what changes, then save."}
          </span>
          <button className="bt sm right" disabled={running || !check?.ok} onClick={() => void work(replay)}>
            {running ? "Working…" : "Replay the calls on record"}
          </button>
        </footer>
      </section>
      <Result result={result}>
        {file && replayed === draft && draft !== file.text && (
          <footer className="row">
            <span className="dim sm">Replaces {file.path}; every running process applies it.</span>
            <button className="bt sm right" disabled={running} onClick={() => void work(save)}>
              Save this policy
            </button>
          </footer>
        )}
      </Result>
    </div>
  );
}

function useCheck(draft: string): Check | undefined {
  const [check, setCheck] = useState<Check>();
  useEffect(() => {
    let stale = false;
    const timer = setTimeout(() => {
      post<Check>("/policy/check", { policy: draft })
        .then((found) => !stale && setCheck(found))
        .catch((problem: unknown) => {
          if (!stale && problem instanceof Problem)
            setCheck({ ok: false, rules: 0, problems: [{ line: null, key: "", problem: problem.message, fix: "" }] });
        });
    }, CHECK_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [draft]);
  return check;
}

function Result({ result, children }: { result: Simulation | Problem | undefined; children?: ReactNode }) {
  if (!result)
    return (
      <section className="card">
        <p className="in-pad mid">
          Replay shows which of the calls on record would have ended differently under this draft, and how many
          questions you would have been asked.
        </p>
      </section>
    );
  if (result instanceof Problem) return <p className="red">{result.line}</p>;
  const denies = result.by.filter((each) => each.to === "deny").reduce((sum, each) => sum + each.n, 0);
  return (
    <section className="card" aria-live="polite">
      <div className="in-pad">
        <p className="lgx">
          {int(result.changed)} of {count(result.total, "call")} would end differently
        </p>
        <div className="row wrap gap16 mt8 mid">
          <span>
            Prompts: <b className="num">{`${int(result.prompts_before)} → ${int(result.prompts_after)}`}</b>
          </span>
          <span>
            New denies: <b className="num">{count(denies, "call")}</b>
          </span>
        </div>
      </div>
      {result.diff && <Diff text={result.diff} />}
      {result.by.map((group) => (
        <Group key={`${group.from} ${group.to}`} group={group} calls={result.calls} />
      ))}
      {children}
    </section>
  );
}

const SHOWN = 8;

function Group({ group, calls }: { group: Simulation["by"][number]; calls: ChangedCall[] }) {
  const [open, setOpen] = useState(true);
  const rows = calls.filter((call) => call.from === group.from && call.to === group.to);
  return (
    <Fragment>
      <button className="group btn" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="row">
          <Decided effect={group.from} />
          <span className="dim">becomes</span>
          <Decided effect={group.to} />
        </span>
        <span className="num">{count(group.n, "call")}</span>
      </button>
      {open && (
        <table className="tbl">
          <tbody>
            {rows.slice(0, SHOWN).map((call) => (
              <tr key={call.call_id}>
                <td className="b">{call.tool}</td>
                <td className="mono sm cutx">
                  <Visible text={mainOf(call)} />
                </td>
                <td className="np dim sm nowrap">{call.rule}</td>
                <td className="r">
                  <Link className="link" href={`/calls/${call.call_id}`}>
                    see
                  </Link>
                </td>
              </tr>
            ))}
            {group.n > SHOWN && (
              <tr>
                <td colSpan={4} className="dim sm">
                  and {count(group.n - SHOWN, "more call")}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      )}
    </Fragment>
  );
}

function mainOf(call: ChangedCall): string {
  const first = Object.values(call.args ?? {}).find((value) => typeof value === "string");
  return typeof first === "string" ? first : "";
}
