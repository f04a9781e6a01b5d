/** Reads with a cache: one entry per path, shared by all components, reloaded when an event makes it stale. */
import { useCallback, useEffect, useSyncExternalStore } from "react";
import { get, Problem } from "./client";

export interface Query<T> {
  data: T | undefined;
  error: Problem | undefined;
  loading: boolean;
  at: number;
}

const EMPTY: Query<never> = { data: undefined, error: undefined, loading: true, at: 0 };
const entries = new Map<string, Query<unknown>>();
const running = new Map<string, Promise<void>>();
const listeners = new Map<string, Set<() => void>>();

function publish(path: string, entry: Query<unknown>): void {
  entries.set(path, entry);
  listeners.get(path)?.forEach((listener) => listener());
}

export function load(path: string): Promise<void> {
  const before = running.get(path);
  if (before) return before;
  const work = get<unknown>(path)
    .then((data) => publish(path, { data, error: undefined, loading: false, at: Date.now() }))
    .catch((error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      publish(path, { data: entries.get(path)?.data, error, loading: false, at: Date.now() });
    })
    .finally(() => running.delete(path));
  running.set(path, work);
  return work;
}

/** Reload what is on screen and drop what is not, for every path that starts with one of the prefixes. */
export function invalidate(...prefixes: string[]): void {
  for (const path of entries.keys()) {
    if (!prefixes.some((prefix) => path.startsWith(prefix))) continue;
    if (listeners.get(path)?.size) void load(path);
    else entries.delete(path);
  }
}

/** `null` asks nothing. */
export function useQuery<T>(path: string | null): Query<T> & { reload: () => void } {
  const subscribe = useCallback(
    (listener: () => void) => {
      if (path === null) return () => {};
      const all = listeners.get(path) ?? new Set();
      listeners.set(path, all.add(listener));
      return () => all.delete(listener);
    },
    [path],
  );
  const entry = useSyncExternalStore(subscribe, () => (path === null ? EMPTY : (entries.get(path) ?? EMPTY)));
  useEffect(() => {
    if (path !== null && !entries.has(path)) void load(path);
  }, [path, entry]);
  return { ...(entry as Query<T>), reload: () => path !== null && void load(path) };
}
