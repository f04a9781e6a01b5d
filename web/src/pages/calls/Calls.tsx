/** Calls: what every agent did, newest first, with filters in the URL; one call opens beside the list. */
import { useEffect, useMemo, useState } from "react";
import { useLocation, useSearch } from "wouter";
import { IconTimeline, IconX } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import { useCallList } from "../../state/calls";
import { usePhone } from "../../state/phone";
import { Search } from "../../ui/controls";
import { count, int } from "../../ui/format";
import { typing } from "../../ui/keys";
import { Empty, Failed, Loading } from "../../ui/states";
import { CallDetailPane } from "./CallDetailPane";
import { CallRows, ROW_PHONE, ROW } from "./CallRows";
import { Histogram } from "./Histogram";
import s from "./Calls.module.css";

const FILTERS = ["q", "tool", "client", "outcome", "decision", "danger", "session"] as const;
type FilterName = (typeof FILTERS)[number];

const CHOICES: [FilterName, string, string[]][] = [
  ["outcome", "Outcome", ["done", "failed", "refused", "lost"]],
  ["decision", "Decision", ["allow", "ask", "deny"]],
  ["danger", "Danger", ["safe", "low", "medium", "high", "critical"]],
];

const HELD_AFTER = 40;

export default function Calls({ params }: { params: { id?: string } }) {
  const search = useSearch();
  const [location, go] = useLocation();
  const phone = usePhone();
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [held, setHeld] = useState(false);
  const filters = useMemo(() => new URLSearchParams(search), [search]);
  const query = useMemo(() => queryOf(filters), [filters]);
  const list = useCallList(query, held);
  const tail = search ? `?${search}` : "";
  const { rows } = list;

  const setFilter = (name: FilterName, value: string) => {
    const next = new URLSearchParams(search);
    if (value) next.set(name, value);
    else next.delete(name);
    go(location + (next.size ? `?${next}` : ""), { replace: true });
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (typing(event)) return;
      const step = { j: 1, k: -1 }[event.key];
      if (event.key === "Escape" && params.id) go(`/calls${tail}`);
      if (!step) return;
      const at = rows.findIndex((row) => row.id === params.id);
      const next = Math.max(0, Math.min(rows.length - 1, at + step));
      if (!rows[next]) return;
      go(`/calls/${rows[next].id}${tail}`);
      box?.scrollTo({ top: Math.max(0, next * (phone ? ROW_PHONE : ROW) - 200) });
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [rows, params.id, tail, go, box, phone]);

  if (list.error && !rows.length) return <Failed what="Calls" problem={list.error} retry={list.reload} />;
  const filtered = query !== "";
  return (
    <div className={`split ${s.calls}`}>
      <div>
        <Histogram />
        <Filters
          filters={filters}
          setFilter={setFilter}
          clear={() => go("/calls")}
          shown={countWords(list, filtered)}
        />
      </div>
      <div className={`${s.calls2} ${params.id ? `${s.open} ${s.mini}` : ""}`}>
        <div
          className={s.vlist}
          ref={setBox}
          tabIndex={0}
          role="region"
          aria-label="Calls, newest first"
          onScroll={(event) => setHeld(event.currentTarget.scrollTop > HELD_AFTER)}
        >
          {list.fresh > 0 && (
            <button
              className={`bt sm ${s.fresh}`}
              onClick={() => {
                box?.scrollTo(0, 0);
                setHeld(false);
              }}
            >
              {count(list.fresh, "new call")}
            </button>
          )}
          <div className={`${s.cgrid} ${s.h}`}>
            <span>When</span>
            <span />
            <span className={s.hide}>Client</span>
            <span>Tool</span>
            <span>What</span>
            <span className={s.hide}>Danger</span>
            <span className={s.hide}>Decision</span>
            <span className="r">Took</span>
          </div>
          {list.loading ? (
            <Loading rows={16} />
          ) : rows.length ? (
            <CallRows rows={rows} box={box} current={params.id} tail={tail} phone={phone} more={list.more} />
          ) : (
            <NoCalls filtered={filtered} clear={() => go("/calls")} />
          )}
        </div>
        {params.id && <CallDetailPane key={params.id} id={params.id} close={() => go(`/calls${tail}`)} />}
      </div>
    </div>
  );
}

function queryOf(filters: URLSearchParams): string {
  const kept = new URLSearchParams();
  for (const name of FILTERS) {
    const value = filters.get(name);
    if (value) kept.set(name, value);
  }
  return kept.toString();
}

function countWords(list: { rows: unknown[]; total: number | null }, filtered: boolean): string {
  if (list.total !== null && !filtered) return count(list.total, "call");
  return `${int(list.rows.length)} shown`;
}

function NoCalls({ filtered, clear }: { filtered: boolean; clear: () => void }) {
  if (filtered)
    return (
      <Empty icon={<IconTimeline aria-hidden />} title="No call matches these filters">
        <button className="bt mt8" onClick={clear}>
          Clear the filters
        </button>
      </Empty>
    );
  return (
    <Empty icon={<IconTimeline aria-hidden />} title="No calls yet">
      <p>Every tool call of every agent appears here when it ends. Connect an agent, or make a first call yourself:</p>
      <pre className="pre">toolreeve adopt{"\n"}toolreeve call list_directory path=.</pre>
    </Empty>
  );
}

interface FilterProps {
  filters: URLSearchParams;
  setFilter: (name: FilterName, value: string) => void;
  clear: () => void;
  shown: string;
}

function Filters({ filters, setFilter, clear, shown }: FilterProps) {
  const tools =
    useQuery<{ tools: { name: string }[] }>("/tools")
      .data?.tools.map((tool) => tool.name)
      .sort() ?? [];
  const choices: typeof CHOICES = [["tool", "Tool", tools], ...CHOICES];
  const active = FILTERS.some((name) => filters.get(name));
  return (
    <div className="filters" role="search">
      <Search
        label="Filter by text"
        placeholder="Path, command, error code…"
        value={filters.get("q") ?? ""}
        change={(value) => setFilter("q", value)}
      />
      <span className="row wrap no-phone">
        {choices.map(([name, label, values]) => (
          <select
            key={name}
            className="in quiet"
            aria-label={label}
            value={filters.get(name) ?? ""}
            onChange={(event) => setFilter(name, event.target.value)}
          >
            <option value="">{label}: all</option>
            {values.map((value) => (
              <option key={value} value={value}>
                {value}
              </option>
            ))}
          </select>
        ))}
        {(["client", "session"] as const).map(
          (name) =>
            filters.get(name) && (
              <button
                key={name}
                className="tag ac"
                onClick={() => setFilter(name, "")}
                title={`Remove the filter ${name}`}
              >
                {name} {filters.get(name)!.slice(0, 16)} <IconX size={12} aria-hidden />
              </button>
            ),
        )}
      </span>
      {active && (
        <button className="bt sm ghost" onClick={clear}>
          <IconX aria-hidden />
          Clear
        </button>
      )}
      <span className="dim sm num nowrap">{shown}</span>
    </div>
  );
}
