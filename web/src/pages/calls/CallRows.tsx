/** The virtual list of calls: only the rows in sight are in the page. */
import { memo, useEffect } from "react";
import { Link } from "wouter";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { CallRow } from "../../api/types";
import { millis, ms } from "../../ui/format";
import { Danger, Decided, OutcomeIcon, Time } from "../../ui/signs";
import { Visible } from "../../ui/Visible";
import s from "./Calls.module.css";

export const ROW = 32;
export const ROW_PHONE = 58;
const AHEAD = 60;

interface Props {
  rows: CallRow[];
  box: HTMLDivElement | null;
  current?: string;
  tail: string;
  phone: boolean;
  more: () => void;
}

export const CallRows = memo(function CallRows({ rows, box, current, tail, phone, more }: Props) {
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box,
    estimateSize: () => (phone ? ROW_PHONE : ROW),
    overscan: 10,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - AHEAD) more();
  }, [last, rows.length, more]);
  return (
    <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
      {items.map((item) => {
        const row = rows[item.index];
        return (
          <Link
            key={row.id}
            href={`/calls/${row.id}${tail}`}
            className={s.cgrid}
            aria-current={row.id === current ? "true" : undefined}
            style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start}px)` }}
          >
            {phone ? <PhoneCells row={row} /> : <Cells row={row} />}
          </Link>
        );
      })}
    </div>
  );
});

function What({ row }: { row: CallRow }) {
  return (
    <>
      <span className="mono mid">
        {row.hidden ? <span className="dim">hidden for your role</span> : <Visible text={row.main} />}
      </span>
      <Code row={row} />
      {row.undone && <span className="tag ml">undone</span>}
    </>
  );
}

const CODE_LOOK: Partial<Record<CallRow["outcome"], string>> = { refused: "red sm", waiting: "accent sm" };

function Code({ row }: { row: CallRow }) {
  if (!row.code) return null;
  const text = row.outcome === "waiting" ? "waits for an answer" : row.code;
  return <span className={CODE_LOOK[row.outcome] ?? "orange sm"}> {text}</span>;
}

function Cells({ row }: { row: CallRow }) {
  const effect = row.decision?.effect ?? "allow";
  return (
    <>
      <span className="dim">
        <Time at={millis(row.at)} short />
      </span>
      <OutcomeIcon outcome={row.outcome} code={row.code} />
      <span className={`cut mid ${s.hide}`}>{row.client || row.origin}</span>
      <span className="cut b">{row.tool}</span>
      <span className="cut">
        <What row={row} />
      </span>
      <span className={s.hide}>{row.danger && <Danger level={row.danger} />}</span>
      <span className={s.hide}>
        {effect === "allow" ? <span className="dim sm">allow</span> : <Decided effect={effect} />}
      </span>
      <span className="num r dim">{ms(row.duration_ms)}</span>
    </>
  );
}

function PhoneCells({ row }: { row: CallRow }) {
  return (
    <>
      <OutcomeIcon outcome={row.outcome} code={row.code} />
      <span className="cut">
        <b className="b">{row.tool}</b> <span className="mono">{row.main}</span>
      </span>
      <span className="dim sm">
        <Time at={millis(row.at)} short />
      </span>
      <span className={`${s.pt} cut sm dim`}>
        {row.client || row.origin}
        <Code row={row} />
      </span>
      <span className="num sm dim">{ms(row.duration_ms)}</span>
    </>
  );
}
