/** The open question: its card while it waits, and afterwards who ended it, and how. */
import { Link } from "wouter";
import { IconArrowLeft, IconBan, IconCheck, IconClockOff, IconX } from "@tabler/icons-react";
import type { Card, Question } from "../../api/types";
import { useQuery } from "../../api/query";
import { useInbox } from "../../state/inbox";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";
import { millis } from "../../ui/format";
import { Prose } from "../../ui/Visible";
import { QuestionView } from "./QuestionView";

interface Props {
  id: string;
  next: () => void;
  step: (by: number) => void;
}

export function QuestionPane({ id, next, step }: Props) {
  const { data, error, reload } = useQuery<Card>(`/approvals/${encodeURIComponent(id)}`);
  const { waiting, loaded } = useInbox();
  if (!data && error) return <Failed what="This question" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  // The list knows first that a question is no longer open; its buttons vanish before they can be pressed.
  const open = data.state === "pending" && (!loaded || waiting.some((each) => each.id === id));
  if (open) return <QuestionView card={data} next={next} />;
  return data.state === "pending" ? <Loading /> : <Ended card={data} others={waiting.length} step={step} />;
}

type End = "allowed" | "denied" | "expired" | "withdrawn";

function endOf(question: { state: string; granted?: boolean | null; answer?: Card["answer"] }): End {
  if (question.state === "expired" || question.state === "withdrawn") return question.state;
  const granted =
    question.granted ?? (question.answer ? question.answer.answer === "allow" : question.state !== "denied");
  return granted ? "allowed" : "denied";
}

export function endedWords(question: Question & { granted?: boolean | null }): string {
  const by = question.answered_by ? ` by ${question.answered_by}` : "";
  return { allowed: `allowed${by}`, denied: `denied${by}`, expired: "timed out", withdrawn: "withdrawn by the agent" }[
    endOf(question)
  ];
}

const ICONS = { allowed: IconCheck, denied: IconBan, expired: IconClockOff, withdrawn: IconX };

const TITLES: Record<End, string> = {
  allowed: "Already allowed",
  denied: "Already denied",
  expired: "Nobody answered in time",
  withdrawn: "Withdrawn by the agent",
};

function Ended({ card, others, step }: { card: Card; others: number; step: (by: number) => void }) {
  const end = endOf(card);
  const Icon = ICONS[end];
  return (
    <>
      <div className="only-phone backrow pad">
        <Link href="/inbox" className="row mid">
          <IconArrowLeft size={18} aria-hidden />
          All questions
        </Link>
      </div>
      <Empty title={TITLES[end]} icon={<Icon aria-hidden />}>
        <p>
          <Prose text={card.sentence} />
        </p>
        {end === "expired" && <p className="mid">The agent was told “timeout”, not “no”.</p>}
        {card.answered_by && (
          <p className="mid">
            Answered by {card.answered_by}
            {card.answer?.channel && ` in ${card.answer.channel}`}
            {card.answered_at && (
              <>
                , <Time at={millis(card.answered_at)} />
              </>
            )}
            .
          </p>
        )}
        {card.answer?.note && <p className="mid">“{card.answer.note}”</p>}
        <p className="mt8">
          <Link className="link" href={`/calls/${card.call_id}`}>
            See the call
          </Link>
        </p>
        {others > 0 && (
          <button className="bt mt8" onClick={() => step(1)}>
            Next question
          </button>
        )}
      </Empty>
    </>
  );
}
