/** A question that takes no answer any more: who ended it, where, how. */
import { Link } from "wouter";
import { IconCheck, IconBan, IconClockOff, IconX } from "@tabler/icons-react";
import type { Approval } from "../../api/types";
import { useQuery } from "../../api/query";
import { Empty, Failed, Loading } from "../../ui/states";
import { Prose } from "../../ui/Visible";

const ICONS = { allowed: IconCheck, denied: IconBan, timeout: IconClockOff, withdrawn: IconX, pending: IconX };

const TITLES: Record<Approval["state"], string> = {
  pending: "This question waits",
  allowed: "Already allowed",
  denied: "Already denied",
  timeout: "Nobody answered in time",
  withdrawn: "Withdrawn by the agent",
};

export function Ended({ id, known }: { id: string; known?: Approval }) {
  const query = useQuery<Approval>(known ? null : `/approvals/${encodeURIComponent(id)}`);
  const card = known ?? query.data;
  if (!card && query.error) return <Failed what="This question" problem={query.error} retry={query.reload} />;
  if (!card) return <Loading />;
  const Icon = ICONS[card.state];
  return (
    <Empty title={TITLES[card.state]} icon={<Icon aria-hidden />}>
      <p>
        <Prose text={card.sentence} />
      </p>
      {card.state === "timeout" ? (
        <p className="mid">The agent was told “timeout”, not “no”.</p>
      ) : (
        card.answered_by && <p className="mid">Answered by {card.answered_by}.</p>
      )}
      {card.answer && <p className="mid">“{card.answer}”</p>}
      <p className="mt8">
        <Link className="link" href={`/calls/${card.call_id}`}>
          See the call
        </Link>
      </p>
    </Empty>
  );
}
