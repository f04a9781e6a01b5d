/** The questions that wait, kept current by events. */
import { useSyncExternalStore } from "react";
import { get, Problem } from "../api/client";
import { listen } from "../api/events";
import { invalidate } from "../api/query";
import type { Question } from "../api/types";

export interface InboxState {
  waiting: Question[];
  error: Problem | undefined;
  loaded: boolean;
  loadedAt: number;
}

const SETTLE_MS = 30;

const listeners = new Set<() => void>();
let state: InboxState = { waiting: [], error: undefined, loaded: false, loadedAt: 0 };
let started = false;
let timer = 0;

function update(change: Partial<InboxState>): void {
  state = { ...state, ...change };
  listeners.forEach((each) => each());
}

export async function reloadInbox(): Promise<void> {
  try {
    const page = await get<{ approvals: Question[] }>("/approvals?state=pending&limit=200");
    update({ waiting: page.approvals, error: undefined, loaded: true, loadedAt: Date.now() });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    update({ error, loaded: true });
  }
}

function start(): void {
  started = true;
  void reloadInbox();
  listen(({ event }) => {
    if (event !== "reconnected" && !event.startsWith("approval.")) return;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      void reloadInbox();
      invalidate("/approvals/", "/approvals?");
    }, SETTLE_MS);
  });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!started) start();
  return () => listeners.delete(listener);
}

export const useInbox = () => useSyncExternalStore(subscribe, () => state);
