/** Inbox: the questions that wait for a person, and the one that is open. */
import { useCallback, useEffect } from "react";
import { Link, useLocation, useSearch } from "wouter";
import type { Question } from "../../api/types";
import { useQuery } from "../../api/query";
import { reloadInbox, useInbox } from "../../state/inbox";
import { usePhone } from "../../state/phone";
import { Danger, Time } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";
import { millis, placeName } from "../../ui/format";
import { Prose } from "../../ui/Visible";
import { typing } from "../../ui/keys";
import { endedWords, QuestionPane } from "./QuestionPane";
import s from "./Inbox.module.css";

type Tab = "waiting" | "answered";

export default function Inbox({ params }: { params: { id?: string } }) {
  const { waiting, error, loaded } = useInbox();
  const [location, go] = useLocation();
  const phone = usePhone();
  const tab: Tab = new URLSearchParams(useSearch()).has("answered") ? "answered" : "waiting";
  const setTab = (tab: Tab) => go(`${location}${tab === "answered" ? "?answered" : ""}`, { replace: true });
  const first = waiting[0]?.id;
  // The open question has a URL, so that it stays open when another one arrives or this one is answered elsewhere.
  useEffect(() => {
    if (!params.id && !phone && first && tab === "waiting") go(`/inbox/${first}`, { replace: true });
  }, [params.id, phone, first, tab, go]);
  const step = useStep(waiting, params.id);

  if (error && !waiting.length) return <Failed what="The inbox" problem={error} retry={() => void reloadInbox()} />;
  if (!loaded) return <Loading />;
  const next = () => {
    const at = waiting.findIndex((each) => each.id === params.id);
    const following = waiting[at + 1] ?? waiting[at - 1];
    go(following && following.id !== params.id && !phone ? `/inbox/${following.id}` : "/inbox");
  };
  if (!waiting.length && !params.id && tab === "waiting")
    return (
      <NothingWaits>
        <button className="bt mt8" onClick={() => setTab("answered")}>
          Show what was answered
        </button>
      </NothingWaits>
    );
  return (
    <div className={`split ${s.inbox} ${params.id ? s.open : ""}`} data-question-open={params.id ? "" : undefined}>
      <QuestionList tab={tab} setTab={setTab} waiting={waiting} current={params.id} />
      <div className={`pane ${s.pane}`}>
        {params.id ? (
          <QuestionPane key={params.id} id={params.id} next={next} step={step} />
        ) : (
          !waiting.length && <NothingWaits />
        )}
      </div>
    </div>
  );
}

function useStep(waiting: Question[], current: string | undefined): (by: number) => void {
  const [, go] = useLocation();
  const step = useCallback(
    (by: number) => {
      if (!waiting.length) return;
      const at = waiting.findIndex((each) => each.id === current);
      const next = at < 0 ? 0 : (at + by + waiting.length) % waiting.length;
      go(`/inbox/${waiting[next].id}`);
    },
    [waiting, current, go],
  );
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (typing(event)) return;
      if (event.key === "j") step(1);
      if (event.key === "k") step(-1);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [step]);
  return step;
}

function NothingWaits({ children }: { children?: React.ReactNode }) {
  return (
    <Empty title="Nothing waits for you">
      <p>
        When an agent wants to do something that your policy asks about, the question appears here and in the terminal;
        the first answer counts.
      </p>
      <p className="dim mt8">See one now, in a scratch folder, without a key or a network:</p>
      <pre className="pre">toolreeve demo</pre>
      {children}
    </Empty>
  );
}

interface ListProps {
  tab: Tab;
  setTab: (tab: Tab) => void;
  waiting: Question[];
  current?: string;
}

function QuestionList({ tab, setTab, waiting, current }: ListProps) {
  const history = useQuery<{ approvals: Question[] }>(tab === "answered" ? "/approvals?state=settled&limit=50" : null);
  const rows = tab === "waiting" ? waiting : (history.data?.approvals ?? []);
  return (
    <div className={s.list}>
      <div className="tabs" role="tablist" aria-label="Questions">
        <button role="tab" aria-selected={tab === "waiting"} onClick={() => setTab("waiting")}>
          Waiting<span className="n">{waiting.length}</span>
        </button>
        <button role="tab" aria-selected={tab === "answered"} onClick={() => setTab("answered")}>
          Answered
        </button>
      </div>
      <ul>
        {rows.map((row) => (
          <li key={row.id}>
            <Row row={row} current={row.id === current} />
          </li>
        ))}
      </ul>
      {tab === "answered" && !rows.length && !history.loading && (
        <p className="dim sm pad">No question was answered yet. Each answer is a record in the audit log.</p>
      )}
    </div>
  );
}

function Row({ row, current }: { row: Question; current: boolean }) {
  return (
    <Link
      href={`/inbox/${row.id}${row.state === "pending" ? "" : "?answered"}`}
      className={s.qrow}
      aria-current={current ? "true" : undefined}
    >
      <div className={s.t}>
        <Prose text={row.short} />
      </div>
      <div className={s.m}>
        <Danger level={row.danger} />
        <span className="cut">{[row.client, placeName(row.workspace)].filter(Boolean).join(", ")}</span>
        <span className="right">
          <Time at={millis(row.asked)} short />
        </span>
      </div>
      {row.state !== "pending" && <div className="sm mid mt4">{endedWords(row)}</div>}
    </Link>
  );
}
