/** Runs of Toolreeve's own agent: each a timeline of what was asked, said and done. */
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { IconArrowLeft, IconCornerDownRight, IconMessage, IconTool, IconUser } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import { usePhone } from "../../state/phone";
import { count, millis, plainJson } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import s from "./Runs.module.css";

type Run = Schemas["AgentRunSummary"];
type RunDetail = Schemas["AgentRunDetail"];
type Message = Schemas["AgentMessage"];
type Answer = Schemas["AgentAnswer"];

/** How a run ended, as words; `completed` is silent. */
const ended = (run: Run) => run.stop.replaceAll("_", " ") || "goes on, or its process died";
const stopLook = (run: Run) => (run.stop === "completed" ? "dim" : run.stop ? "orange b" : "amber");
const dollars = (value: number) => `$${value.toFixed(value < 1 ? 4 : 2)}`;

export default function Runs({ params }: { params: { id?: string } }) {
  const { data, error, reload } = useQuery<{ runs: Run[] }>("/runs");
  const phone = usePhone();
  const [, go] = useLocation();
  if (!data && error) return <Failed what="The runs" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.runs.length)
    return (
      <Empty title="No runs of the agent yet">
        <p>What Toolreeve’s own agent is asked, says and does appears here, step by step.</p>
        <pre className="pre">toolreeve agent run "What does this project do?" --model ollama:qwen3</pre>
      </Empty>
    );
  const id = params.id ?? (phone ? undefined : data.runs[0].id);
  return (
    <div className={`split two ${id ? "open" : ""}`}>
      <div className="list">
        <ul>
          {data.runs.map((run) => (
            <li key={run.id}>
              <Link href={`/runs/${run.id}`} className="item" aria-current={run.id === id ? "true" : undefined}>
                <div className="clip2">
                  <Visible text={run.question} />
                </div>
                <div className="row sm dim num mt4">
                  <span className={stopLook(run)}>{ended(run)}</span>
                  <span>{count(run.steps, "step")}</span>
                  <span className="right">
                    <Time at={millis(run.began)} />
                  </span>
                </div>
              </Link>
            </li>
          ))}
        </ul>
      </div>
      <div className="pane">{id && <RunPane key={id} id={id} back={() => go("/runs")} />}</div>
    </div>
  );
}

function RunPane({ id, back }: { id: string; back: () => void }) {
  const { data, error, reload } = useQuery<RunDetail>(`/runs/${encodeURIComponent(id)}`);
  if (!data && error) return <Failed what="The run" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  return (
    <div className="pad">
      <button className="link only-phone backrow" onClick={back}>
        <span className="row">
          <IconArrowLeft size={16} aria-hidden />
          All runs
        </span>
      </button>
      <h2 className="tl clip2">
        <Visible text={data.question} />
      </h2>
      <div className="row wrap sm mid num mt8">
        <span className={stopLook(data)}>{ended(data)}</span>
        <span className="mono">{data.model}</span>
        <span>{count(data.steps, "step")}</span>
        {data.cost > 0 && <span>{dollars(data.cost)}</span>}
        <Time at={millis(data.began)} />
        <Link className="link right" href={`/calls?session=${encodeURIComponent(data.session)}`}>
          Its calls
        </Link>
      </div>
      <ol className={s.line} aria-label="What happened, in order">
        {data.messages.map((message, index) => (
          <Step key={index} message={message} />
        ))}
      </ol>
      <p className="dim sm">
        In a terminal: <code>toolreeve agent replay {id.slice(0, 8)}</code>; to go on:{" "}
        <code>toolreeve agent chat --resume {id.slice(0, 8)}</code>
      </p>
    </div>
  );
}

function Step({ message }: { message: Message }) {
  if (message.role === "tool")
    return message.answers?.map((answer) => <Result key={answer.id} answer={answer} at={message.at} />);
  const user = message.role === "user";
  return (
    <>
      {message.text && (
        <li className={user ? s.user : undefined}>
          {user ? <IconUser aria-hidden /> : <IconMessage aria-hidden />}
          <Head who={user ? "You" : "Agent"} at={message.at} />
          <Long text={message.text} />
        </li>
      )}
      {message.calls?.map((call) => (
        <li key={call.id}>
          <IconTool aria-hidden />
          <Head who={call.name} at={message.at} />
          <code className={s.args}>
            <Visible text={plainJson(call.args)} />
          </code>
        </li>
      ))}
    </>
  );
}

function Head({ who, at, children }: { who: string; at?: number; children?: React.ReactNode }) {
  return (
    <div className="row">
      <span className="b">{who}</span>
      {children}
      {at !== undefined && (
        <span className="right dim sm">
          <Time at={millis(at)} short />
        </span>
      )}
    </div>
  );
}

function Result({ answer, at }: { answer: Answer; at?: number }) {
  return (
    <li className={answer.is_error ? s.failed : undefined}>
      <IconCornerDownRight aria-hidden />
      <Head who={answer.is_error ? `${answer.name} failed` : answer.name} at={at}>
        {answer.labels?.map((label) => (
          <span key={label} className={`tag ${label.startsWith("untrusted") ? "hi" : ""}`}>
            {label}
          </span>
        ))}
        {answer.call_id && (
          <Link className="link sm" href={`/calls/${answer.call_id}`}>
            see the call
          </Link>
        )}
      </Head>
      <Long text={answer.text} mono />
    </li>
  );
}

const SHOWN = 600;

function Long({ text, mono }: { text: string; mono?: boolean }) {
  const [open, setOpen] = useState(false);
  const cut = !open && text.length > SHOWN;
  return (
    <div className={`${s.text} ${mono ? "mono sm" : ""}`}>
      <Visible text={cut ? text.slice(0, SHOWN) : text} />
      {cut && (
        <button className="link sm" onClick={() => setOpen(true)}>
          … show all {text.length.toLocaleString("en-GB")} characters
        </button>
      )}
    </div>
  );
}
