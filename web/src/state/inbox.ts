/** The questions that wait, kept current by events. */
import { useSyncExternalStore } from "react";
import { listen } from "../api/events";
import { get, Problem } from "../api/client";
import type { Approval, Page } from "../api/types";

export interface InboxState {
  waiting: Approval[];
  /** Questions that were answered or ended while this page was open, newest first. */
  ended: Approval[];
  error: Problem | undefined;
  loaded: boolean;
  loadedAt: number;
}

const listeners = new Set<() => void>();
let state: InboxState = { waiting: [], ended: [], error: undefined, loaded: false, loadedAt: 0 };
let started = false;

function update(change: Partial<InboxState>): void {
  state = { ...state, ...change };
  listeners.forEach((each) => each());
}

export async function reloadInbox(): Promise<void> {
  try {
    const page = await get<Page<Approval>>("/approvals?state=pending&limit=200");
    const known = new Set(page.items.map((each) => each.id));
    const lost = state.waiting.filter((each) => !known.has(each.id));
    update({ waiting: page.items, error: undefined, loaded: true, loadedAt: Date.now() });
    await Promise.all(lost.map((each) => refresh(each.id)));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    update({ error, loaded: true });
  }
}

async function refresh(id: string): Promise<void> {
  const card = await get<Approval>(`/approvals/${encodeURIComponent(id)}`);
  place(card);
}

/** Put a card where its state says. */
export function place(card: Approval): void {
  const waiting = state.waiting.filter((each) => each.id !== card.id);
  const ended = state.ended.filter((each) => each.id !== card.id);
  if (card.state === "pending") {
    const at = state.waiting.findIndex((each) => each.id === card.id);
    update({ waiting: at < 0 ? [card, ...waiting] : state.waiting.with(at, card), ended });
  } else update({ waiting, ended: [card, ...ended] });
}

function start(): void {
  started = true;
  void reloadInbox();
  listen(({ event, data }) => {
    if (event === "reconnected") void reloadInbox();
    if (event.startsWith("approval.") && typeof data.id === "string") place(data as unknown as Approval);
  });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!started) start();
  return () => listeners.delete(listener);
}

export const useInbox = () => useSyncExternalStore(subscribe, () => state);
