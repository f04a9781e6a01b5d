/** Questions that are equal but for their arguments, answered together: each is shown, each can be left out. */
import { useEffect, useMemo, useState } from "react";
import { get, post, Problem } from "../../api/client";
import type { Card, Question } from "../../api/types";
import { reloadInbox, useInbox } from "../../state/inbox";
import { Diff } from "../../ui/Diff";
import { Arguments } from "../../ui/Evidence";
import { count } from "../../ui/format";
import { toast } from "../../ui/states";
import { Prose } from "../../ui/Visible";
import s from "./Inbox.module.css";

const MOST = 20;

/** Same client, session, tool, rule and danger; never critical, and never after a trial. */
export function useEqual(card: Question): Question[] {
  const { waiting } = useInbox();
  return useMemo(() => {
    if (card.danger === "critical" || card.kind === "trial") return [];
    const key = keyOf(card);
    return waiting.filter((each) => each.id !== card.id && keyOf(each) === key).slice(0, MOST);
  }, [waiting, card]);
}

const keyOf = (card: Question) =>
  JSON.stringify([card.client, card.session, card.tool, card.rule, card.danger, card.kind, card.user]);

interface Props {
  card: Card;
  equal: Question[];
  ready: boolean;
  next: () => void;
}

export function EqualQuestions({ card, equal, ready, next }: Props) {
  const [open, setOpen] = useState(false);
  if (!open)
    return (
      <p className="note info mt16">
        {count(equal.length, "more question")} of the same kind {equal.length === 1 ? "waits" : "wait"}.{" "}
        <button className="link" onClick={() => setOpen(true)}>
          Look at all {equal.length + 1} together
        </button>
      </p>
    );
  return <Batch card={card} equal={equal} ready={ready} next={next} />;
}

function Batch({ card, equal, ready, next }: Props) {
  const cards = useCards(card, equal);
  const [left, setLeft] = useState<Set<string>>(new Set());
  const chosen = cards.filter((each) => !left.has(each.id));
  const complete = cards.length === equal.length + 1;
  const toggle = (id: string) => {
    const after = new Set(left);
    if (!after.delete(id)) after.add(id);
    setLeft(after);
  };
  const decide = async (answer: "allow" | "deny") => {
    const items = chosen.map((each) => ({ id: each.id, digest: each.digest, answer, scope: "once" }));
    try {
      const { results } = await post<{ results: { status?: number }[] }>("/approvals/decide", { items });
      const refused = results.filter((each) => each.status !== undefined).length;
      const done = `${count(results.length - refused, "call")} ${answer === "allow" ? "allowed" : "denied"}`;
      toast(refused ? `${done}, ${refused} answered elsewhere or too late` : done);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    await reloadInbox();
    next();
  };
  return (
    <section className="card mt16" aria-label="Equal questions">
      <header>
        <span className="b">{count(cards.length, "equal question")}, answered together</span>
        <span className="dim sm right no-phone">one decision and one record each</span>
      </header>
      {cards.map((each) => (
        <div key={each.id} className={s.equal}>
          <label className="row b">
            <input className="ck" type="checkbox" checked={!left.has(each.id)} onChange={() => toggle(each.id)} />
            <span>
              <Prose text={each.short} />
            </span>
          </label>
          <Arguments args={each.args} />
          {each.files.map((file) => file.diff && <Diff key={file.path} text={file.diff} />)}
        </div>
      ))}
      <footer className="row">
        <button className="bt" disabled={!ready || !complete || !chosen.length} onClick={() => void decide("allow")}>
          Allow {chosen.length} of {cards.length} once
        </button>
        <button className="bt" disabled={!ready || !complete || !chosen.length} onClick={() => void decide("deny")}>
          Deny {chosen.length} of {cards.length}
        </button>
      </footer>
    </section>
  );
}

function useCards(card: Card, equal: Question[]): Card[] {
  const [others, setOthers] = useState<Card[]>([]);
  const ids = equal.map((each) => each.id).join(" ");
  useEffect(() => {
    let stale = false;
    Promise.all(
      ids
        .split(" ")
        .filter(Boolean)
        .map((id) => get<Card>(`/approvals/${encodeURIComponent(id)}`)),
    )
      .then((found) => !stale && setOthers(found.filter((each) => each.state === "pending")))
      .catch((problem: unknown) => problem instanceof Problem && toast(problem.line));
    return () => {
      stale = true;
    };
  }, [ids]);
  return [card, ...others];
}
