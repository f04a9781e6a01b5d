/** Live events. The browser reconnects with `Last-Event-ID`; after a gap, everything on screen is read again. */
import { useSyncExternalStore } from "react";
import { API } from "./client";
import { invalidate } from "./query";

export interface LiveEvent {
  event: string;
  task_id: string;
  timestamp: string;
  data: Record<string, unknown>;
}

export interface Connection {
  live: boolean;
  /** When the connection was lost, or 0. */
  lostAt: number;
}

type Listener = (event: LiveEvent) => void;

const KINDS = [
  "approval.requested",
  "approval.resolved",
  "approval.withdrawn",
  "call.started",
  "call.finished",
  "server.state",
  "tool.changed",
  "policy.changed",
  "chain.state",
  "budget",
];

/** Which reads an event makes stale. Calls are merged into their list instead, see `state/calls.ts`. */
const STALE: Record<string, string[]> = {
  "approval.requested": ["/status"],
  "approval.resolved": ["/status", "/policy/grants", "/policy/suggestions"],
  "approval.withdrawn": ["/status"],
  "call.started": ["/runs"],
  "call.finished": ["/runs"],
  "server.state": ["/servers", "/tools", "/status"],
  "tool.changed": ["/servers", "/tools"],
  "policy.changed": ["/policy", "/status"],
  "chain.state": ["/audit", "/status"],
};

const QUIET_MS = 35_000;
const RETRY_MS = 1_000;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let connection: Connection = { live: false, lostAt: 0 };
let source: EventSource | undefined;
let quiet = 0;
let retry = 0;

function report(live: boolean): void {
  if (live === connection.live) return;
  connection = { live, lostAt: live ? 0 : connection.lostAt || Date.now() };
  watchers.forEach((each) => each());
}

/** A connection without a heartbeat for a while is dead, even if the browser has not noticed. */
function heard(): void {
  clearTimeout(quiet);
  quiet = window.setTimeout(reopen, QUIET_MS);
}

function reopen(): void {
  report(false);
  source?.close();
  clearTimeout(quiet);
  clearTimeout(retry);
  retry = window.setTimeout(open, RETRY_MS);
}

function deliver(message: MessageEvent<string>): void {
  heard();
  const envelope = JSON.parse(message.data) as LiveEvent;
  if (!envelope.event) return;
  const event = { ...envelope, event: message.type };
  const stale = STALE[event.event];
  if (stale) invalidate(...stale);
  listeners.forEach((each) => each(event));
}

function open(): void {
  const again = connection.lostAt > 0;
  source = new EventSource(`${API}/events`);
  source.onopen = () => {
    heard();
    report(true);
    if (!again) return;
    invalidate("/");
    listeners.forEach((each) => each({ event: "reconnected", task_id: "", timestamp: "", data: {} }));
  };
  source.onmessage = deliver;
  source.addEventListener("heartbeat", heard);
  for (const kind of KINDS) source.addEventListener(kind, deliver as EventListener);
  source.onerror = reopen;
}

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  if (!source) open();
  return () => listeners.delete(listener);
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    () => connection,
  );
}
