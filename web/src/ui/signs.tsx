/** The signs of the console: danger, decision, outcome, time. One sign each, everywhere. */
import type { ReactNode } from "react";
import { IconAlertTriangle, IconBan, IconCheck, IconHelpCircle, IconLoader2 } from "@tabler/icons-react";
import type { DangerLevel, Effect, Outcome } from "../api/types";
import { useNow } from "../state/clock";
import { ago } from "./format";

const LEVEL: Record<DangerLevel, number> = { safe: 0, low: 1, medium: 2, high: 3, critical: 4 };

/** Four bars, filled as far as the level, with the word: never colour alone. */
export function Danger({ level, chip }: { level: DangerLevel; chip?: boolean }) {
  return (
    <span className={`danger ${level} ${chip ? "chip" : ""}`}>
      <i aria-hidden>
        {[1, 2, 3, 4].map((bar) => (
          <b key={bar} className={bar <= LEVEL[level] ? "on" : ""} />
        ))}
      </i>
      {level}
    </span>
  );
}

const DECISION = { allow: IconCheck, ask: IconHelpCircle, deny: IconBan };

export function Decided({ effect, children }: { effect: Effect; children?: ReactNode }) {
  const Icon = DECISION[effect];
  return (
    <span className={`dec ${effect}`}>
      <Icon aria-hidden />
      {children ?? effect}
    </span>
  );
}

export const VERDICT: Record<Effect, string> = { allow: "Runs unasked", ask: "Asks a person", deny: "Is denied" };

const OUTCOME = {
  running: ["run", IconLoader2],
  done: ["ok", IconCheck],
  refused: ["deny", IconBan],
  failed: ["fail", IconAlertTriangle],
  lost: ["fail", IconAlertTriangle],
  waiting: ["ask", IconHelpCircle],
} as const;

export function OutcomeIcon({ outcome, code }: { outcome: Outcome; code?: string }) {
  const [look, Icon] = OUTCOME[outcome];
  return (
    <span className={`st ${look}`} title={code || outcome}>
      <Icon aria-hidden />
      <span className="sr">{outcome}</span>
    </span>
  );
}

/** Relative, with the exact time on hover. `at` is in milliseconds since the epoch. */
export function Time({ at, short }: { at: number; short?: boolean }) {
  const now = useNow();
  if (!at) return <span className="dim">never</span>;
  const exact = new Date(at).toISOString();
  const text = ago(now - at);
  return (
    <time className="num nowrap" dateTime={exact} title={exact.replace("T", " ")}>
      {short ? text.replace(" ago", "") : text}
    </time>
  );
}
