/** One time series chart. Drawn anew when the theme changes, because a canvas knows no CSS variables. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import s from "../pages/activity/Activity.module.css";

export interface Series {
  label: string;
  colour: string;
  values: (number | null)[];
  fill?: boolean;
  dash?: number[];
}

export interface Mark {
  at: number;
  label: string;
}

interface Props {
  times: number[];
  series: Series[];
  unit: (value: number) => string;
  label: string;
  scheme: string;
  marks?: Mark[];
  log?: boolean;
}

const HEIGHT = 150;
const FONT = "11px Inter, system-ui, sans-serif";

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDecade = (value: number) => Math.abs(Math.log10(value) % 1) < 1e-9;

function logRange(_: uPlot, low: number, high: number): [number, number] {
  return [10 ** Math.floor(Math.log10(Math.max(0.01, low || 1))), 10 ** Math.ceil(Math.log10(high || 10))];
}

function linearRange(_: uPlot, __: number, high: number): [number, number] {
  return [0, (high || 1) * 1.12];
}

function axes({ unit, log, times }: Props): uPlot.Axis[] {
  const stroke = colour("--tx-3");
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const time = (at: number) => {
    const iso = new Date(at * 1000).toISOString();
    return span > 2 * 86_400 ? iso.slice(5, 10) : iso.slice(11, 16);
  };
  const decades = (_: uPlot, splits: number[]) => splits.map((value) => (isDecade(value) ? value : null));
  return [
    {
      stroke,
      font: FONT,
      grid: { show: false },
      ticks: { show: false },
      size: 26,
      values: (_, splits) => splits.map(time),
    },
    {
      stroke,
      font: FONT,
      grid: { stroke: colour("--c-grid"), width: 1, ...(log ? { filter: decades } : {}) },
      ticks: { show: false },
      size: 62,
      space: log ? 10 : 34,
      values: (_, splits) => splits.map((value) => (value === null || (log && !isDecade(value)) ? "" : unit(value))),
    },
  ];
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = plot;
  for (const mark of marks) {
    const x = plot.valToPos(mark.at, "x", true);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--tx-3");
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px Inter, system-ui`;
    ctx.fillText(mark.label, x + 4, bbox.top + 10 * devicePixelRatio);
    ctx.restore();
  }
}

/** Few values make no line: they are drawn as points. */
const isSparse = (values: (number | null)[]) => values.filter((value) => value !== null).length < 12;

function draw(props: Props, box: HTMLDivElement): uPlot {
  const { times, series, marks = [], log } = props;
  return new uPlot(
    {
      width: box.clientWidth - 16,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, sync: { key: "activity" }, points: { size: 6 } },
      scales: { x: { time: true }, y: log ? { distr: 3, log: 10, range: logRange } : { range: linearRange } },
      axes: axes(props),
      series: [
        {},
        ...series.map((each) => ({
          label: each.label,
          stroke: colour(each.colour),
          width: 1.5,
          dash: each.dash,
          fill: each.fill ? `${colour(each.colour)}22` : undefined,
          points: { show: isSparse(each.values), size: 5 },
        })),
      ],
      hooks: { draw: [(plot) => drawMarks(plot, marks)] },
    },
    [times, ...series.map((each) => each.values)] as uPlot.AlignedData,
    box,
  );
}

export default function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { times, series, scheme, label } = props;
  useEffect(() => {
    const plot = draw(props, box.current!);
    const watch = new ResizeObserver(() => plot.setSize({ width: box.current!.clientWidth - 16, height: HEIGHT }));
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the rest follows from these
  }, [times, series, scheme]);
  return <div ref={box} className={s.chart} role="img" aria-label={label} style={{ height: HEIGHT + 12 }} />;
}
