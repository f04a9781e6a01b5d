/** One call: what it was, the road it took, and everything on record about it. */
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { IconArrowBackUp, IconCopy, IconPlayerPlay, IconX } from "@tabler/icons-react";
import { post, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import type { CallDetail, Target } from "../../api/types";
import { copyText, Menu } from "../../ui/controls";
import { Diff } from "../../ui/Diff";
import { Arguments, Effects } from "../../ui/Evidence";
import { int, millis, placeName } from "../../ui/format";
import { Danger, Decided, OutcomeIcon, Time } from "../../ui/signs";
import { Failed, Loading, toast } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import { Road } from "./Road";

export function CallDetailPane({ id, close }: { id: string; close: () => void }) {
  const { data, error, reload } = useQuery<CallDetail>(`/calls/${encodeURIComponent(id)}`);
  return (
    <section className="pane" aria-label="The call">
      {data ? (
        <Detail call={data} close={close} reload={reload} />
      ) : error ? (
        <Failed what="This call" problem={error} retry={reload} />
      ) : (
        <Loading />
      )}
    </section>
  );
}

function Detail({ call, close, reload }: { call: CallDetail; close: () => void; reload: () => void }) {
  return (
    <div className="pad">
      <div className="row wrap">
        <OutcomeIcon outcome={call.outcome} code={call.code} />
        <h2 className="tl">{call.tool}</h2>
        <span className="dim num">#{int(call.seq)}</span>
        {call.danger && <Danger level={call.danger} />}
        {call.cached && <span className="tag">from cache</span>}
        {call.undone && <span className="tag">undone</span>}
        <Actions call={call} close={close} reload={reload} />
      </div>
      {call.main && (
        <p className="mono mt8 big">
          <Visible text={call.main} />
        </p>
      )}
      <p className="mid sm mt8">
        {call.client || call.origin}
        {call.workspace && (
          <>
            {" "}
            in{" "}
            <span className="mono" title={call.workspace}>
              {placeName(call.workspace)}
            </span>
          </>
        )}
        , <Time at={millis(call.at)} />, session{" "}
        <Link className="link mono" href={`/calls?session=${encodeURIComponent(call.session)}`}>
          {call.session.slice(0, 12)}
        </Link>
        {call.labels.map((label) => (
          <span key={label} className={`tag ml ${label.includes("untrusted") ? "hi" : ""}`}>
            {label}
          </span>
        ))}
      </p>
      {call.code && <ErrorNote call={call} />}
      <Road call={call} />
      <Parts call={call} />
    </div>
  );
}

function Actions({ call, close, reload }: { call: CallDetail; close: () => void; reload: () => void }) {
  const [, go] = useLocation();
  const copy = (text: string, what: string) => void copyText(text).then(() => toast(`Copied as ${what}`));
  const act = async (name: "undo" | "rerun", done: string) => {
    try {
      const result = await post<{ meta?: { call_id?: string } }>(`/calls/${call.id}/${name}`, {});
      const made = result.meta?.call_id;
      toast(done, made && "See it", () => go(`/calls/${made}`));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.message);
    }
    invalidate("/calls", "/audit");
    reload();
  };
  const copies = call.copy;
  return (
    <span className="row right">
      {copies && (
        <Menu
          label="Copy as"
          icon={<IconCopy aria-hidden />}
          items={[
            { label: "Command line", hint: "toolreeve", go: () => copy(copies.cli, "a command") },
            { label: "curl", hint: "REST", go: () => copy(copies.curl, "curl") },
            { label: "Python", hint: "async", go: () => copy(copies.python, "Python") },
            { label: "Link", hint: "URL", go: () => copy(location.href, "a link") },
          ]}
        />
      )}
      {call.args && (
        <button
          className="bt sm"
          title="A new call, judged anew"
          onClick={() => void act("rerun", "Ran as a new call")}
        >
          <IconPlayerPlay aria-hidden />
          Rerun
        </button>
      )}
      {(call.undoable || call.undone) && (
        <button
          className="bt sm"
          disabled={call.undone}
          onClick={() => void act("undo", "Undone: the files are as before")}
        >
          <IconArrowBackUp aria-hidden />
          {call.undone ? "Undone" : "Undo"}
        </button>
      )}
      <button className="icon" aria-label="Close" onClick={close}>
        <IconX />
      </button>
    </span>
  );
}

interface ErrorBody {
  suggestions?: string[];
}

function ErrorNote({ call }: { call: CallDetail }) {
  const suggestions = (call.result?.error as ErrorBody | null | undefined)?.suggestions ?? [];
  return (
    <div className={`note ${call.outcome}`}>
      <b className="mono">{call.code}</b> <Visible text={call.message} />
      {suggestions.length > 0 && (
        <div className="mid sm mt4">
          Told to the agent:{" "}
          {suggestions.map((each) => (
            <code key={each} className="chip">
              {each}
            </code>
          ))}
        </div>
      )}
    </div>
  );
}

const TABS = ["Arguments", "Result", "Changes", "Decision", "Record"] as const;
type Tab = (typeof TABS)[number];

function Parts({ call }: { call: CallDetail }) {
  const changed = call.undoable || call.undone || diffOf(call) !== "";
  const first: Tab = call.code ? "Result" : changed ? "Changes" : "Arguments";
  const [tab, setTab] = useState<Tab>(first);
  return (
    <>
      <div className="tabs inner-tabs mt16" role="tablist" aria-label="Parts of the call">
        {TABS.filter((each) => each !== "Changes" || changed).map((each) => (
          <button key={each} role="tab" aria-selected={each === tab} onClick={() => setTab(each)}>
            {each}
          </button>
        ))}
      </div>
      <div className="mt16" role="tabpanel" aria-label={tab}>
        {tab === "Arguments" && <Arguments args={call.args} />}
        {tab === "Result" && <Result call={call} />}
        {tab === "Changes" && <Changes call={call} />}
        {tab === "Decision" && <DecisionList call={call} />}
        {tab === "Record" && <Json value={call.records} />}
      </div>
    </>
  );
}

function Json({ value }: { value: unknown }) {
  return (
    <pre className="pre" tabIndex={0}>
      <Visible text={JSON.stringify(value, null, 2)} />
    </pre>
  );
}

function Result({ call }: { call: CallDetail }) {
  if (call.result) return <Json value={call.result.data ?? call.result.error ?? call.result} />;
  return (
    <p className="dim">
      {call.hidden
        ? "Hidden for your role: a viewer sees no results of others."
        : "Results are kept in memory for recent calls only; this one is gone. The record below has its outcome."}
    </p>
  );
}

/** The difference that the tool itself returned, or that follows from what undo keeps. */
function diffOf(call: CallDetail): string {
  const data = call.result?.data as { diff?: unknown } | null | undefined;
  return typeof data?.diff === "string" ? data.diff : call.diff;
}

/** An effect on record is one text: what is done, and to what. */
function targetOf(effect: string): Target {
  const at = effect.indexOf(":");
  return { kind: effect.slice(0, at), target: effect.slice(at + 1), reach: "" };
}

function Changes({ call }: { call: CallDetail }) {
  const diff = diffOf(call);
  return (
    <div className="card">
      <header>
        <h3>What it changed</h3>
        <span className="right dim sm">{call.undone ? "undone since" : "what it replaced is kept for undo"}</span>
      </header>
      <div className="in-pad">
        <Effects effects={call.effects.map(targetOf)} />
      </div>
      {diff && <Diff text={diff} />}
    </div>
  );
}

function DecisionList({ call }: { call: CallDetail }) {
  const decision = call.decision;
  if (!decision) return <p className="dim">The call ended before a decision.</p>;
  return (
    <dl className="kv">
      <dt>Effect</dt>
      <dd>
        <Decided effect={decision.effect} />
      </dd>
      <dt>Layer</dt>
      <dd>{decision.layer}</dd>
      <dt>Rule</dt>
      <dd>
        {decision.rule ? (
          <Link className="link" href={`/policy?rule=${encodeURIComponent(decision.rule)}`}>
            {decision.rule}
          </Link>
        ) : (
          <span className="dim">none</span>
        )}
      </dd>
      <dt>Reason</dt>
      <dd>{decision.reason}</dd>
      <dt>Approved by</dt>
      <dd>{call.approved_by ?? <span className="dim">not asked</span>}</dd>
      <dt>Sandbox</dt>
      <dd>{call.slot ?? <span className="dim">no process was run</span>}</dd>
      <dt>To change it</dt>
      <dd>
        <Link className="link" href={`/policy/explain?call=${call.id}`}>
          explain
        </Link>
      </dd>
    </dl>
  );
}
