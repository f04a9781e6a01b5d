/** What would be decided about any call, by which layer and rule, and the smallest change that alters it. */
import { useEffect, useMemo, useState } from "react";
import { useSearch } from "wouter";
import { Problem } from "../../api/client";
import { useQuery } from "../../api/query";
import type { CallDetail, Card } from "../../api/types";
import { Command } from "../../ui/Evidence";
import { Danger, Decided } from "../../ui/signs";
import { Loading } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import { Layers } from "./Layers";
import { useExplain, verdictOf, type Explanation } from "./useExplain";
import s from "./Policy.module.css";

interface Subject {
  tool: string;
  args: Record<string, unknown>;
}

/** The call that a link names: one on record, or one that is asked about. */
function useSubject(): Subject | undefined {
  const search = new URLSearchParams(useSearch());
  const call = search.get("call");
  const approval = search.get("approval");
  const path = call
    ? `/calls/${encodeURIComponent(call)}`
    : approval
      ? `/approvals/${encodeURIComponent(approval)}`
      : null;
  const { data } = useQuery<CallDetail | Card>(path);
  return useMemo(() => {
    if (path === null) return { tool: "bash", args: { command: "git status && rm -rf build" } };
    return data && { tool: data.tool, args: data.args ?? {} };
  }, [path, data]);
}

export function Explain() {
  const subject = useSubject();
  if (!subject) return <Loading />;
  return <Form key={JSON.stringify(subject)} subject={subject} />;
}

function Form({ subject }: { subject: Subject }) {
  const tools = useQuery<{ tools: { name: string }[] }>("/tools").data?.tools ?? [];
  const [tool, setTool] = useState(subject.tool);
  const [text, setText] = useState(JSON.stringify(subject.args, null, 1));
  const [args, problem] = useMemo(() => parse(text), [text]);
  const found = useExplain(tool, args, problem === "");
  useEffect(() => {
    if (tool !== subject.tool) setText("{}");
  }, [tool, subject.tool]);
  return (
    <>
      <div className={s.ex}>
        <select className="in" aria-label="Tool" value={tool} onChange={(event) => setTool(event.target.value)}>
          {[...new Set([tool, ...tools.map((each) => each.name)])].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <textarea
          data-filter
          className="in mono"
          aria-label="Arguments as JSON"
          rows={Math.min(12, text.split("\n").length)}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {problem && <p className="red sm mt8">{problem}</p>}
      {!problem && found instanceof Problem && <p className="red mt8">{found.message}</p>}
      {!problem && found && !(found instanceof Problem) && <Found found={found} command={args.command} />}
    </>
  );
}

function parse(text: string): [Record<string, unknown>, string] {
  try {
    return [JSON.parse(text) as Record<string, unknown>, ""];
  } catch (error) {
    return [{}, `The arguments are not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function Found({ found, command }: { found: Explanation; command: unknown }) {
  return (
    <>
      <section className="card mt16" aria-live="polite">
        <header>
          <Decided effect={found.effect}>
            <b className="lgx">{verdictOf(found)}</b>
          </Decided>
          <Danger level={found.danger} chip />
        </header>
        <div className="in-pad col">
          <p>
            <Visible text={found.reason} />
          </p>
          <Layers layers={found.layers} hit={found.layer} />
          <dl className="kv mt8">
            <dt>Rule</dt>
            <dd>
              {found.rule ? (
                <>
                  {found.rule} <span className="mono dim">{found.place}</span>
                </>
              ) : (
                <span className="dim">none matched</span>
              )}
            </dd>
            {found.change && (
              <>
                <dt>Smallest change</dt>
                <dd>
                  <Visible text={found.change} />
                </dd>
              </>
            )}
          </dl>
        </div>
      </section>
      {found.commands.length > 0 && typeof command === "string" && <Command text={command} parts={found.commands} />}
    </>
  );
}
