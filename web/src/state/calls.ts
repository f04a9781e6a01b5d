/** The list of calls: newest first, more on scrolling, the newest again when a call ends. */
import { useCallback, useEffect, useRef, useState } from "react";
import { get, Problem } from "../api/client";
import { listen } from "../api/events";
import type { CallPage, CallRow } from "../api/types";

const PAGE = 200;
/** Calls that end within this time are read together, however many keep coming. */
const TOGETHER_MS = 250;

export interface CallList {
  rows: CallRow[];
  total: number | null;
  error: Problem | undefined;
  loading: boolean;
  /** Calls that ended since the list was held. */
  fresh: number;
  more: () => void;
  reload: () => void;
}

interface Loaded {
  rows: CallRow[];
  cursor: string | null;
  total: number | null;
}

const path = (query: string, cursor?: string | null) => {
  const search = new URLSearchParams(query);
  search.set("limit", String(PAGE));
  if (cursor) search.set("cursor", cursor);
  return `/calls?${search}`;
};

/** While `held` is true, the list does not move under the reader; new calls are only counted. */
export function useCallList(query: string, held: boolean): CallList {
  const [list, setList] = useState<Loaded & { query: string }>();
  const [error, setError] = useState<Problem>();
  const [fresh, setFresh] = useState(0);
  const busy = useRef(false);
  const isHeld = useRef(held);
  isHeld.current = held;

  const reload = useCallback(async () => {
    try {
      const page = await get<CallPage>(path(query));
      setList((before) => ({ query, ...merge(page, before?.query === query ? before : undefined) }));
      setError(undefined);
      setFresh(0);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setError(problem);
    }
  }, [query]);

  const latest = useRef(list);
  latest.current = list;
  const more = useCallback(async () => {
    const shown = latest.current;
    if (busy.current || !shown?.cursor || shown.query !== query) return;
    busy.current = true;
    try {
      const page = await get<CallPage>(path(query, shown.cursor));
      const known = new Set(shown.rows.map((row) => row.id));
      const rows = [...shown.rows, ...page.calls.filter((row) => !known.has(row.id))];
      setList({ query, rows, cursor: page.cursor, total: shown.total });
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setError(problem);
    } finally {
      busy.current = false;
    }
  }, [query]);

  useEffect(() => {
    if (!held || latest.current?.query !== query) void reload();
  }, [held, query, reload]);
  useEffect(() => {
    let timer = 0;
    const stop = listen(({ event }) => {
      if (event !== "call.finished" && event !== "reconnected") return;
      if (isHeld.current) return setFresh((before) => before + 1);
      timer ||= window.setTimeout(() => {
        timer = 0;
        void reload();
      }, TOGETHER_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [reload]);

  const current = list?.query === query ? list : undefined;
  return {
    rows: current?.rows ?? [],
    total: current?.total ?? null,
    error,
    loading: !current,
    fresh,
    more,
    reload,
  };
}

/** The newest page before the rows that are known already, if the two meet. */
function merge(page: CallPage, before: Loaded | undefined): Loaded {
  const fresh = { rows: page.calls, cursor: page.cursor, total: page.total };
  if (!before || before.rows.length <= page.calls.length) return fresh;
  const ids = new Set(page.calls.map((row) => row.id));
  const meets = before.rows.some((row) => ids.has(row.id));
  if (!meets) return fresh;
  return {
    rows: [...page.calls, ...before.rows.filter((row) => !ids.has(row.id))],
    cursor: before.cursor,
    total: page.total,
  };
}
