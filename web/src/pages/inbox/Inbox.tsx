/** Inbox: the questions that wait for a person, and the one that is open. */
import { useCallback, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import type { Approval } from "../../api/types";
import { useQuery } from "../../api/query";
import { reloadInbox, useInbox } from "../../state/inbox";
import { usePhone } from "../../state/phone";
import { Danger, Time } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";
import { millis } from "../../ui/format";
import { Prose } from "../../ui/Visible";
import { typing } from "../../ui/keys";
import { Ended } from "./Ended";
import { Question } from "./Question";
import s from "./Inbox.module.css";

type Tab = "waiting" | "answered";

export default function Inbox({ params }: { params: { id?: string } }) {
  const { waiting, ended, error, loaded } = useInbox();
  const [, go] = useLocation();
  const phone = usePhone();
  const [tab, setTab] = useState<Tab>("waiting");
  const chosen = waiting.find((each) => each.id === params.id);
  const current = chosen ?? (params.id || phone ? undefined : waiting[0]);

  const step = useCallback(
    (by: number) => {
      if (!waiting.length) return;
      const at = Math.max(
        0,
        waiting.findIndex((each) => each.id === current?.id),
      );
      go(`/inbox/${waiting[(at + by + waiting.length) % waiting.length].id}`);
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

  if (error && !waiting.length) return <Failed what="The inbox" problem={error} retry={() => void reloadInbox()} />;
  if (!loaded) return <Loading />;
  if (!waiting.length && !ended.length && !params.id) return <NothingWaits />;
  const next = () => {
    const at = waiting.findIndex((each) => each.id === current?.id);
    const following = waiting[at + 1] ?? waiting[at - 1];
    go(following && !phone ? `/inbox/${following.id}` : "/inbox");
  };
  const open = current || params.id;
  return (
    <div className={`split ${s.inbox} ${open ? s.open : ""}`} data-question-open={params.id ? "" : undefined}>
      <QuestionList tab={tab} setTab={setTab} waiting={waiting} ended={ended} current={current?.id ?? params.id} />
      <div className={`pane ${s.pane}`}>
        {current ? (
          <Question key={current.id} card={current} next={next} />
        ) : params.id ? (
          <Ended id={params.id} known={ended.find((each) => each.id === params.id)} />
        ) : (
          !phone && <NothingWaits />
        )}
      </div>
    </div>
  );
}

function NothingWaits() {
  return (
    <Empty title="Nothing waits for you">
      <p>
        When an agent wants to do something that your policy asks about, the question appears here and in the terminal;
        the first answer counts.
      </p>
      <p className="dim mt8">See one now, in a scratch folder, without a key or a network:</p>
      <pre className="pre">toolreeve demo</pre>
    </Empty>
  );
}

interface ListProps {
  tab: Tab;
  setTab: (tab: Tab) => void;
  waiting: Approval[];
  ended: Approval[];
  current?: string;
}

function QuestionList({ tab, setTab, waiting, ended, current }: ListProps) {
  const history = useQuery<{ items: Approval[] }>(tab === "answered" ? "/approvals?state=answered&limit=50" : null);
  const here = new Set(ended.map((each) => each.id));
  const answered = [...ended, ...(history.data?.items ?? []).filter((each) => !here.has(each.id))];
  const rows = tab === "waiting" ? waiting : answered;
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
        {rows.map((card) => (
          <li key={card.id}>
            <Link href={`/inbox/${card.id}`} className={s.qrow} aria-current={card.id === current ? "true" : undefined}>
              <div className={s.t}>
                <Prose text={card.short} />
              </div>
              <div className={s.m}>
                <Danger level={card.danger} />
                <span className="cut">{place(card)}</span>
                <span className="right">
                  <Time at={millis(card.asked)} short />
                </span>
              </div>
              {card.state !== "pending" && <div className="sm mid mt4">{ENDED[card.state]}</div>}
            </Link>
          </li>
        ))}
      </ul>
      {tab === "answered" && !answered.length && !history.loading && (
        <p className="dim sm pad">No question was answered yet. Each answer is a record in the audit log.</p>
      )}
    </div>
  );
}

const ENDED: Record<Approval["state"], string> = {
  pending: "",
  allowed: "allowed",
  denied: "denied",
  timeout: "timed out",
  withdrawn: "withdrawn by the agent",
};

const place = (card: Approval) => [card.client, card.workspace].filter(Boolean).join(", ");
