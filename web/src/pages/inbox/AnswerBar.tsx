/** The answer: never a default button, nothing decided by a stray key, the rule in sight before it is granted. */
import { lazy, Suspense, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { useQuery } from "../../api/query";
import type { Card, Grant, Schemas, Scope } from "../../api/types";
import { Choices } from "../../ui/controls";
import { ruleText } from "../../ui/format";
import { typing } from "../../ui/keys";
import { Prose, Visible } from "../../ui/Visible";
import { DenyNote } from "./DenyNote";
import { HoldButton } from "./HoldButton";
import { useAnswer, useReady } from "./useAnswer";
import s from "./Inbox.module.css";

const EditCall = lazy(() => import("./EditCall"));

const ARMED_MS = 4_000;

interface Props {
  card: Card;
  keep?: Set<string>;
  total: number;
  next: () => void;
}

/** Who may only look is told how to log in, where the buttons would be. */
export function AnswerBar(props: Props) {
  const session = useQuery<Schemas["Session"]>("/session").data;
  if (!session || session.scopes.includes("approve")) return <Answers {...props} />;
  return (
    <div className={s.bar}>
      <div className={s.inner}>
        <p className="mid">
          This browser may look, but not answer. Open the link that the server printed, or another one:{" "}
          <code>toolreeve tokens link</code>
        </p>
      </div>
    </div>
  );
}

function Answers({ card, keep, total, next }: Props) {
  const [, go] = useLocation();
  const [scope, setScope] = useState<Scope>("once");
  const [choice, setChoice] = useState(0);
  const [denying, setDenying] = useState(false);
  const [editing, setEditing] = useState(false);
  const [armed, setArmed] = useState(false);
  const [know, setKnow] = useState(false);
  const ready = useReady();
  const send = useAnswer(card, next, go);
  const critical = card.danger === "critical";
  const editable = card.kind !== "trial" && card.args !== null;
  const grants = card.grants.filter((each) => each.scope === scope && !each.withheld);
  const grant = grants[Math.min(choice, grants.length - 1)];
  const empty = keep !== undefined && keep.size === 0;

  const allow = (heldMs?: number) => {
    if (!ready || empty) return;
    setArmed(false);
    void send({
      answer: "allow",
      scope,
      ...(scope !== "once" && grant?.choice ? { choice: grant.choice } : {}),
      ...(keep && keep.size < total ? { keep: [...keep] } : {}),
      ...(know ? { know } : {}),
      ...(heldMs ? { held_ms: heldMs } : {}),
    });
  };
  const deny = (note: string) => {
    if (ready) void send({ answer: "deny", ...(note ? { note } : {}) });
  };
  const choose = (value: Scope) => {
    if (isOpen(card, value)) setScope(value);
    setChoice(0);
    setArmed(false);
  };
  useAnswerKeys(ready, {
    a: () => {
      if (critical || empty) return;
      if (armed) allow();
      else setArmed(true);
    },
    d: () => setDenying(true),
    e: () => editable && setEditing(true),
    escape: () => {
      setArmed(false);
      setDenying(false);
    },
    "1": () => choose("once"),
    "2": () => choose("session"),
    "3": () => choose("always"),
  });
  useEffect(() => {
    if (!armed) return;
    const timer = setTimeout(() => setArmed(false), ARMED_MS);
    return () => clearTimeout(timer);
  }, [armed]);

  const verb = allowWords(card, scope, keep, total);
  return (
    <div className={s.bar}>
      <div className={s.inner}>
        {denying ? (
          <DenyNote ready={ready} deny={deny} back={() => setDenying(false)} />
        ) : (
          <>
            <GrantChoice card={card} scope={scope} choose={choose} grant={grant} />
            {grants.length > 1 && <Coverage grants={grants} choice={choice} setChoice={setChoice} />}
            {scope !== "once" && grant?.rule && (
              <div className={s.rule}>
                <pre className="pre" tabIndex={0} aria-label="The rule that is granted">
                  <Visible text={ruleText(grant.rule)} />
                </pre>
              </div>
            )}
            {card.knowable?.length > 0 && (
              <label className={`row sm mid ${s.know}`}>
                <input className="ck" type="checkbox" checked={know} onChange={() => setKnow(!know)} />
                <span>
                  Keep as a known recipient: <Visible text={card.knowable.join(", ")} />
                </span>
              </label>
            )}
            <div className={s.acts}>
              {critical ? (
                <HoldButton disabled={!ready || empty} label={`Hold to ${lower(verb)}`} done={allow} />
              ) : (
                <button
                  className={`bt ${s.allow} ${armed ? "armed" : ""}`}
                  disabled={!ready || empty}
                  onClick={() => allow()}
                >
                  <span>{armed ? `Press A again: ${lower(verb)}` : verb}</span>
                  <kbd>A</kbd>
                </button>
              )}
              <button className={`bt ${s.deny}`} disabled={!ready} onClick={() => setDenying(true)}>
                <span>{card.kind === "trial" ? "Discard all…" : "Deny…"}</span>
                <kbd>D</kbd>
              </button>
              {editable && (
                <button className={`bt ghost ${s.edit}`} disabled={!ready} onClick={() => setEditing(true)}>
                  <span>Edit…</span>
                  <kbd>E</kbd>
                </button>
              )}
              {critical && (
                <span id="hold-hint" className="sm dim no-phone">
                  Critical: hold for 1.2 s. A click or a tap does nothing.
                </span>
              )}
            </div>
          </>
        )}
      </div>
      {editing && (
        <Suspense fallback={null}>
          <EditCall
            card={card}
            ready={ready}
            close={() => setEditing(false)}
            send={(args) => send({ answer: "allow", scope: "once", args })}
          />
        </Suspense>
      )}
    </div>
  );
}

const lower = (text: string) => text[0].toLowerCase() + text.slice(1);

/** A critical call is allowed once, each time. */
const isOpen = (card: Card, scope: Scope) =>
  scope === "once" ||
  (card.danger !== "critical" && card.grants.some((each) => each.scope === scope && !each.withheld));

function allowWords(card: Card, scope: Scope, keep: Set<string> | undefined, total: number): string {
  if (card.kind === "trial" && keep) return `Keep ${keep?.size ?? total} of ${total} changes`;
  return { once: "Allow once", session: "Allow for this session", always: "Allow always" }[scope];
}

function useAnswerKeys(ready: boolean, actions: Record<string, () => void>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = actions[event.key.toLowerCase()];
      if (!action || !ready || event.repeat || typing(event)) return;
      if (event.key === "d" || event.key === "e") event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

interface GrantProps {
  card: Card;
  scope: Scope;
  choose: (scope: Scope) => void;
  grant: Grant | undefined;
}

function GrantChoice({ card, scope, choose, grant }: GrantProps) {
  const longer = (["session", "always"] as const).filter((each) => isOpen(card, each));
  const withheldFor = (each: Scope) =>
    isOpen(card, each)
      ? undefined
      : (card.grants.find((one) => one.scope === each)?.withheld ?? "not offered for this call");
  const reasons = [...new Set(card.grants.flatMap((each) => (each.withheld ? [each.withheld] : [])))];
  return (
    <div className={s.grant}>
      {longer.length > 0 && (
        <Choices
          label="How long the answer holds"
          value={scope}
          choose={choose}
          options={[
            { value: "once", label: "Once" },
            { value: "session", label: "This session", withheld: withheldFor("session") },
            { value: "always", label: "Always", withheld: withheldFor("always") },
          ]}
        />
      )}
      <span className="sm mid">
        {scope !== "once" && grant ? (
          <>
            {scope === "session" ? "Until this session ends: " : "Written to your policy: "}
            <Prose text={grant.text ?? ""} />
          </>
        ) : card.danger === "critical" ? (
          "Only once: a critical call is never granted ahead of time."
        ) : card.kind === "trial" ? (
          "Kept changes are written now; the rest is thrown away."
        ) : reasons.length ? (
          <>
            Not “always”: <Prose text={reasons[0]} />.
          </>
        ) : (
          "Only this call, exactly as shown."
        )}
      </span>
    </div>
  );
}

function Coverage({ grants, choice, setChoice }: { grants: Grant[]; choice: number; setChoice: (at: number) => void }) {
  return (
    <label className="row sm mid mt4">
      It covers
      <select className="in quiet" value={choice} onChange={(event) => setChoice(Number(event.target.value))}>
        {grants.map((each, index) => (
          <option key={index} value={index}>
            {each.text?.replaceAll("`", "")}
          </option>
        ))}
      </select>
    </label>
  );
}
