/** What would be decided about a call, asked as it is typed. */
import { useEffect, useState } from "react";
import { post, Problem } from "../../api/client";
import { VERDICT } from "../../ui/signs";
import type { DangerLevel, Effect, Part } from "../../api/types";

export interface Explanation {
  effect: Effect;
  runs: string;
  danger: DangerLevel;
  layer: string;
  layers: { layer: string; effect: Effect | null; reason: string }[];
  rule: string | null;
  place: string | null;
  reason: string;
  change: string | null;
  commands: Part[];
}

/** A trial is asked about after it ran, if at all. */
export function verdictOf(found: Explanation): string {
  if (found.runs !== "try" || found.effect === "deny") return VERDICT[found.effect];
  return found.effect === "ask" ? "Runs on trial, then asks a person" : "Runs on trial";
}

const DEBOUNCE_MS = 150;

export function useExplain(
  tool: string,
  args: Record<string, unknown>,
  wanted: boolean,
): Explanation | Problem | undefined {
  const [found, setFound] = useState<{ key: string; answer: Explanation | Problem }>();
  const key = JSON.stringify([tool, args]);
  useEffect(() => {
    if (!wanted) return;
    let stale = false;
    const keep = (answer: Explanation | Problem) => !stale && setFound({ key, answer });
    const timer = setTimeout(() => {
      const body = { tool, args: (JSON.parse(key) as [string, object])[1] };
      post<Explanation>("/policy/explain", body)
        .then(keep)
        .catch((problem: unknown) => problem instanceof Problem && keep(problem));
    }, DEBOUNCE_MS);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [tool, key, wanted]);
  return found?.answer;
}
