/** The changes of one file, in one or two columns. Lines wrap: what is off the edge was not shown. */
import { useMemo } from "react";
import { pairLines, parseDiff, type DiffLine } from "./diff";
import { Visible } from "./Visible";
import s from "./Diff.module.css";

export function Diff({ text, twoColumns }: { text: string; twoColumns?: boolean }) {
  const lines = useMemo(() => parseDiff(text), [text]);
  return (
    <div className={s.scroll} tabIndex={0} role="group" aria-label="Changes">
      <table className={`${s.diff} ${twoColumns ? s.two : ""}`}>
        <colgroup>
          <col className={s.numberColumn} />
          <col className={twoColumns ? undefined : s.signColumn} />
          {twoColumns && <col className={s.numberColumn} />}
          <col />
        </colgroup>
        <tbody>
          {twoColumns ? (
            <TwoColumns lines={lines} />
          ) : (
            lines.map((line, index) => <OneColumn key={index} line={line} />)
          )}
        </tbody>
      </table>
    </div>
  );
}

function Gap({ line, span }: { line: DiffLine; span: number }) {
  return (
    <tr className={s.gap}>
      <td colSpan={span}>
        <Visible text={line.text} />
      </td>
    </tr>
  );
}

const SIGN = { add: "+", del: "−", same: "", gap: "" };

function OneColumn({ line }: { line: DiffLine }) {
  if (line.kind === "gap") return <Gap line={line} span={3} />;
  return (
    <tr className={s[line.kind]}>
      <td className={s.number}>{line.now ?? line.old}</td>
      <td className={s.sign}>{SIGN[line.kind]}</td>
      <td className={s.text}>
        <Line line={line} />
      </td>
    </tr>
  );
}

function TwoColumns({ lines }: { lines: DiffLine[] }) {
  return pairLines(lines).map(([before, after], index) => {
    if (before?.kind === "gap") return <Gap key={index} line={before} span={4} />;
    return (
      <tr key={index}>
        <td className={s.number}>{before?.old}</td>
        <td className={`${s.text} ${before ? s[before.kind] : s.none}`}>{before && <Line line={before} />}</td>
        <td className={s.number}>{after?.now}</td>
        <td className={`${s.text} ${after ? s[after.kind] : s.none}`}>{after && <Line line={after} />}</td>
      </tr>
    );
  });
}

function Line({ line }: { line: DiffLine }) {
  if (!line.changed) return <Visible text={line.text} />;
  const [from, to] = line.changed;
  return (
    <>
      <Visible text={line.text.slice(0, from)} />
      <span className={s.changed}>
        <Visible text={line.text.slice(from, to)} />
      </span>
      <Visible text={line.text.slice(to)} />
    </>
  );
}
