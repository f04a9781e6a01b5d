/** A draft of rules, checked as it is typed, and replayed against the calls on record. */
import { Fragment, useEffect, useState } from "react";
import { Link, useSearch } from "wouter";
import { post, Problem } from "../../api/client";
import { count, int } from "../../ui/format";
import { Decided } from "../../ui/signs";
import { Visible } from "../../ui/Visible";
import { PolicyEditor } from "./PolicyEditor";
import type { ChangedCall, Check, Simulation } from "./types";
import s from "./Policy.module.css";

const START = `version: 1
rules:
  - id: tests-are-free
    tool: [edit_file, write_file]
    target: {under: tests}
    decision: allow
`;

const CHECK_MS = 200;

export default function Simulate() {
  const search = useSearch();
  const [draft, setDraft] = useState(() => new URLSearchParams(search).get("draft") ?? START);
  const check = useCheck(draft);
  const [result, setResult] = useState<Simulation | Problem>();
  const [running, setRunning] = useState(false);
  const run = async () => {
    setRunning(true);
    try {
      setResult(await post<Simulation>("/policy/simulate", { policy: draft }));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setResult(problem);
    } finally {
      setRunning(false);
    }
  };
  return (
    <div className={s.sim}>
      <section className="card">
        <header>
          <code>policy.yaml</code>
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
          <span className="dim sm">A draft: nothing is in force until you save it to your policy file.</span>
          <button className="bt sm right" disabled={running || !check?.ok} onClick={() => void run()}>
            {running ? "Replaying…" : "Replay the calls on record"}
          </button>
        </footer>
      </section>
      <Result result={result} />
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

function Result({ result }: { result: Simulation | Problem | undefined }) {
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
      {result.by.map((group) => (
        <Group key={`${group.from} ${group.to}`} group={group} calls={result.calls} />
      ))}
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
