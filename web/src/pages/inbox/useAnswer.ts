/** Sending an answer, and when one may be sent. */
import { useEffect, useRef, useState } from "react";
import { post, Problem } from "../../api/client";
import { useConnection } from "../../api/events";
import { load } from "../../api/query";
import type { Card, Scope } from "../../api/types";
import { reloadInbox } from "../../state/inbox";
import { toast } from "../../ui/states";

/** Nothing decides right after a question, or the window, came to the front. */
export const DEAD_MS = 700;

export function useReady(): boolean {
  const { live } = useConnection();
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let timer = window.setTimeout(() => setReady(true), DEAD_MS);
    const pause = () => {
      setReady(false);
      clearTimeout(timer);
      timer = window.setTimeout(() => setReady(true), DEAD_MS);
    };
    addEventListener("focus", pause);
    document.addEventListener("visibilitychange", pause);
    return () => {
      clearTimeout(timer);
      removeEventListener("focus", pause);
      document.removeEventListener("visibilitychange", pause);
    };
  }, []);
  return ready && live;
}

export interface Draft {
  answer: "allow" | "deny";
  scope?: Scope;
  choice?: number;
  note?: string;
  keep?: string[];
  args?: Record<string, unknown>;
  know?: boolean;
  held_ms?: number;
}

interface Done {
  call_id?: string;
}

export function useAnswer(card: Card, next: () => void, go: (path: string) => void) {
  const sending = useRef(false);
  return async (draft: Draft): Promise<void> => {
    if (sending.current) return;
    sending.current = true;
    try {
      const done = await post<Done>(`/approvals/${encodeURIComponent(card.id)}/decide`, {
        digest: card.digest,
        ...draft,
      });
      const words = draft.answer === "allow" ? "Allowed" : draft.note ? "Denied. The agent reads your note." : "Denied";
      toast(words, "See the call", () => go(`/calls/${done.call_id || card.call_id}`));
      await reloadInbox();
      next();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await explain(card, error, go);
    } finally {
      sending.current = false;
    }
  };
}

async function explain(card: Card, problem: Problem, go: (path: string) => void): Promise<void> {
  const context = (problem.body.context ?? {}) as Record<string, unknown>;
  if (problem.status === 409 || problem.status === 410) {
    await Promise.all([reloadInbox(), load(`/approvals/${encodeURIComponent(card.id)}`)]);
    return;
  }
  if (typeof context.new_id === "string") {
    toast("The edited call was judged again, and asks anew.");
    go(`/inbox/${context.new_id}`);
    return;
  }
  toast(problem.status === 425 ? "Too early: the question was shown only just now." : problem.line);
}
