/** Audit: whether the chain holds, every record, and the export. */
import { useEffect, useState } from "react";
import { Link, useSearch } from "wouter";
import { IconChevronRight, IconDownload, IconShieldCheck } from "@tabler/icons-react";
import { API, get, post, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import { Copy, Menu, Search } from "../../ui/controls";
import { count, int, millis } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading, toast } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import type { AuditPage, AuditRow, ChainStatus, VerifyReport } from "./types";
import s from "./Audit.module.css";

export default function Audit() {
  const { data, error, reload } = useQuery<ChainStatus>("/audit/status");
  if (!data && error) return <Failed what="The audit log" problem={error} retry={reload} />;
  if (!data) return <Loading rows={14} />;
  if (data.records === 0)
    return (
      <Empty title="The log is empty">
        <p>
          The first call writes record 1. Each record carries the hash of the one before, so none can be edited, removed
          or moved unseen.
        </p>
      </Empty>
    );
  return (
    <div className="pad">
      <Chain status={data} />
      <Records total={data.records} />
    </div>
  );
}

function Chain({ status }: { status: ChainStatus }) {
  const search = useSearch();
  const [running, setRunning] = useState(false);
  const broken = status.broken_at !== null;
  const verify = async () => {
    setRunning(true);
    try {
      const found = await post<VerifyReport>("/audit/verify", {});
      toast(found.ok ? `${count(found.records, "record")}, the chain is intact` : "The chain is broken");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    } finally {
      setRunning(false);
      invalidate("/audit/status", "/status");
    }
  };
  useEffect(() => {
    if (new URLSearchParams(search).has("verify")) void verify();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once, for the link of the palette
  }, []);
  const save = (format: string) => {
    location.href = `${API}/audit/export?format=${format}`;
  };
  return (
    <section className="card">
      <header>
        {broken ? (
          <span className="dot bad" aria-hidden />
        ) : (
          <IconShieldCheck size={16} className={status.verified_at ? "green" : "dim"} aria-hidden />
        )}
        <h2>{headline(status)}</h2>
        <span className="dim sm num no-phone">
          {count(status.records, "record")}
          {status.verified_at && (
            <>
              , verified <Time at={millis(status.verified_at)} />
            </>
          )}
        </span>
        <span className="right row">
          <button className="bt sm" disabled={running} onClick={() => void verify()}>
            {running ? "Verifying…" : "Verify now"}
          </button>
          <Menu
            label="Export"
            icon={<IconDownload aria-hidden />}
            items={[
              { label: "JSON Lines", hint: "all fields", go: () => save("jsonl") },
              { label: "CSV", hint: "flat", go: () => save("csv") },
              { label: "Parquet", hint: "extra", go: () => save("parquet") },
            ]}
          />
        </span>
      </header>
      <div className="in-pad">
        {broken && (
          <p className="mid">
            Record {int(status.broken_at!)} does not carry the hash of the one before it: it, or that one, was changed
            after it was written.
          </p>
        )}
        {status.verified_at && <Stripe parts={status.parts} records={status.records} />}
        <Blocks broken={status.broken_at} />
        <p className="row sm mid mt8">
          <span className="dim">head</span>
          <span className="mono cut">{status.head}</span>
          <Copy text={status.head} label="Copy the head hash" />
          <span className="dim no-phone">Keep it elsewhere: with it, a cut-off end is found too.</span>
        </p>
      </div>
    </section>
  );
}

function headline(status: ChainStatus): string {
  if (status.broken_at !== null) return `The chain is broken at record ${int(status.broken_at)}`;
  return status.verified_at ? "The chain is intact" : "The chain is not verified yet";
}

function Stripe({ parts, records }: { parts: ChainStatus["parts"]; records: number }) {
  const whole = parts.filter((part) => part === "ok").length;
  return (
    <>
      <div className={s.stripe} role="img" aria-label={`${whole} of ${parts.length} parts of the chain are intact`}>
        {parts.map((part, index) => (
          <i key={index} className={{ ok: "", broken: s.bad, unknown: s.no }[part]} />
        ))}
      </div>
      <div className="row dim xs mt4">
        <span>record 1</span>
        <span className="right">record {int(records)}, now</span>
      </div>
    </>
  );
}

const BLOCKS = 6;

function Blocks({ broken }: { broken: number | null }) {
  const { data } = useQuery<AuditPage>(`/audit?limit=${BLOCKS}`);
  return (
    <div className={`${s.chain} mt8`} tabIndex={0} role="group" aria-label="Newest records and their hashes">
      {data?.records.map((row, index) => (
        <div key={row.seq} className="row gap0">
          <div className={`${s.blk} ${row.seq === broken ? s.bad : ""}`}>
            <b className="num">#{int(row.seq)}</b>
            <div className={s.h}>own {row.hash?.slice(0, 8)}</div>
            <div className={s.h}>prev {row.prev?.slice(0, 8)}</div>
          </div>
          {index < data.records.length - 1 && <span className={`${s.lnk} ${row.seq === broken ? s.bad : ""}`} />}
        </div>
      ))}
      <span className={s.lnk} />
      <span className="dim sm nowrap ml">to record 1</span>
    </div>
  );
}

const KINDS: [string, string][] = [
  ["", "all kinds"],
  ["call", "calls"],
  ["approval", "answers of people"],
  ["grant", "grants"],
  ["intent", "intents"],
  ["policy", "policy changes"],
];

function Records({ total }: { total: number }) {
  const [sought, setSought] = useState("");
  const [kind, setKind] = useState("");
  const [rows, setRows] = useState<AuditRow[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem>();
  const query = new URLSearchParams({
    limit: "50",
    ...(kind ? { kind } : {}),
    ...(sought ? { [sought.startsWith("E_") ? "code" : "tool"]: sought } : {}),
  }).toString();
  const load = async (after: string | null) => {
    try {
      const page = await get<AuditPage>(`/audit?${query}${after ? `&cursor=${encodeURIComponent(after)}` : ""}`);
      setRows((before) => (after ? [...before, ...page.records] : page.records));
      setCursor(page.cursor);
      setProblem(undefined);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => void load(null), sought ? 200 : 0);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `load` follows from the query
  }, [query]);
  return (
    <>
      <div className="row wrap mt16">
        <Search
          label="Tool or error code"
          placeholder="Tool or error code: bash, E_DENIED"
          value={sought}
          change={setSought}
        />
        <select
          className="in quiet w160"
          aria-label="Kind of record"
          value={kind}
          onChange={(event) => setKind(event.target.value)}
        >
          {KINDS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <span className="dim sm num right">{count(total, "record")}</span>
      </div>
      {problem && <p className="red mt8">{problem.line}</p>}
      <div className="card mt8 scrollx">
        <table className="tbl">
          <thead>
            <tr>
              <th>Record</th>
              <th className="np">When</th>
              <th className="np">Who</th>
              <th>What</th>
              <th>Kind</th>
              <th className="np">Ended</th>
              <th className="np">Hash</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <RecordRow key={row.seq} row={row} />
            ))}
          </tbody>
        </table>
        {!rows.length && !problem && <p className="pad dim">No record matches.</p>}
      </div>
      {cursor && (
        <button className="bt mt8" onClick={() => void load(cursor)}>
          Show older
          <IconChevronRight aria-hidden />
        </button>
      )}
    </>
  );
}

const TELLING = ["command", "pattern", "query", "path", "url", "expression", "name", "to", "call_id"];

function mainOf(row: AuditRow): string {
  const args = row.args ?? {};
  const first = TELLING.map((name) => args[name]).find((value) => typeof value === "string");
  return typeof first === "string" ? first.slice(0, 200) : "";
}

function RecordRow({ row }: { row: AuditRow }) {
  return (
    <tr>
      <td className="num nowrap">
        {row.call_id ? (
          <Link className="link" href={`/calls/${row.call_id}`}>
            #{int(row.seq)}
          </Link>
        ) : (
          `#${int(row.seq)}`
        )}
      </td>
      <td className="dim np">
        <Time at={millis(row.timestamp)} short />
      </td>
      <td className="np nowrap">{row.user}</td>
      <td>
        {row.code && <span className="only-phone orange xs">{row.code}</span>}
        <span className="b">{row.tool}</span>{" "}
        <span className="mono sm mid wrapx">
          <Visible text={mainOf(row)} />
        </span>
      </td>
      <td className="dim sm">{row.kind}</td>
      <td className={`np sm ${row.code ? "orange" : "mid"}`}>{row.code || (row.kind === "call" ? "ok" : "")}</td>
      <td className="np mono dim xs">{row.hash?.slice(0, 8)}</td>
    </tr>
  );
}
