/** Activity: rates, latencies, prompts and the budget over time; by tool and by client. */
import { useMemo, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { useComputedColorScheme } from "@mantine/core";
import { useQuery } from "../../api/query";
import Chart, { type Series } from "../../ui/Chart";
import { Choices } from "../../ui/controls";
import { count, int, ms } from "../../ui/format";
import { Empty, Failed, Loading } from "../../ui/states";
import type { Group, MetricSeries } from "./types";
import s from "./Activity.module.css";

const RANGES = ["1h", "6h", "24h", "7d"] as const;
type Range = (typeof RANGES)[number];
const MINUTES: Record<Range, number> = { "1h": 60, "6h": 360, "24h": 1440, "7d": 10_080 };

export default function Activity() {
  const search = useSearch();
  const [, go] = useLocation();
  const asked = new URLSearchParams(search).get("range");
  const range: Range = RANGES.find((each) => each === asked) ?? "6h";
  const series = useQuery<MetricSeries>(`/metrics/series?range=${range}`);
  if (!series.data && series.error) return <Failed what="Activity" problem={series.error} retry={series.reload} />;
  if (!series.data) return <Loading />;
  return (
    <div className="pad wide">
      <div className="row wrap">
        <Choices
          label="Time range"
          value={range}
          choose={(value) => go(`/activity?range=${value}`, { replace: true })}
          options={RANGES.map((each) => ({ value: each, label: each.replace(/(\d+)/, "$1 ") }))}
        />
        <span className="dim sm">times in UTC; a person’s thinking time is in no latency</span>
      </div>
      {sum(series.data.calls) === 0 ? (
        <Empty title="Nothing to draw yet">
          <p>
            Rates, latencies and errors appear after the first calls. The same numbers are at <code>/metrics</code> for
            Prometheus.
          </p>
        </Empty>
      ) : (
        <Drawn data={series.data} range={range} />
      )}
    </div>
  );
}

const sum = (values: (number | null)[]) => values.reduce<number>((total, value) => total + (value ?? 0), 0);

function useCharts(data: MetricSeries, range: Range) {
  return useMemo(() => {
    const step = MINUTES[range] / Math.max(1, data.t.length);
    const rate = (values: number[]) => values.map((value) => value / step);
    const calls: Series[] = [
      { label: "all", colour: "--c1", fill: true, values: rate(data.calls) },
      { label: "failed", colour: "--c3", values: rate(data.failed) },
      { label: "refused", colour: "--c-err", values: rate(data.refused) },
    ];
    const latency: Series[] = [
      { label: "p99", colour: "--c3", values: data.p99 },
      { label: "p95", colour: "--c2", values: data.p95 },
      { label: "p50", colour: "--c1", values: data.p50 },
    ];
    const prompts: Series[] = [{ label: "prompts", colour: "--c1", fill: true, values: data.prompts_per_100 }];
    const budget: Series[] = [{ label: "spent", colour: "--c1", fill: true, values: data.spent_at }];
    if (data.limit) budget.push({ label: "limit", colour: "--c-err", values: data.t.map(() => data.limit) });
    return { calls, latency, prompts, budget };
  }, [data, range]);
}

function Drawn({ data, range }: { data: MetricSeries; range: Range }) {
  const scheme = useComputedColorScheme("light");
  const charts = useCharts(data, range);
  const shared = { times: data.t, scheme };
  return (
    <>
      <Tiles data={data} range={range} />
      <div className="g2 mt16">
        <Panel title="Calls" sub="per minute" legend={charts.calls}>
          <Chart
            {...shared}
            series={charts.calls}
            unit={(v) => `${Number(v.toFixed(2))}/min`}
            label="Calls per minute over time"
          />
        </Panel>
        <Panel title="Latency" sub="log scale" legend={charts.latency}>
          <Chart {...shared} series={charts.latency} unit={ms} label="Latency percentiles over time" log />
        </Panel>
        <Panel title="Prompts" sub="questions per 100 calls">
          <Chart {...shared} series={charts.prompts} unit={(v) => `${v} %`} label="Questions per 100 calls over time" />
        </Panel>
        {data.limit ? (
          <Panel title="Budget" sub="dollars" legend={charts.budget}>
            <Chart
              {...shared}
              series={charts.budget}
              unit={(v) => `$${v.toFixed(2)}`}
              label="Dollars spent over time"
            />
          </Panel>
        ) : (
          <Errors errors={data.errors} />
        )}
      </div>
      <div className="g3 mt16">
        {data.limit && <Errors errors={data.errors} />}
        <ByKey title="By tool" by="tool" range={range} />
        <ByKey title="By client" by="client" range={range} />
      </div>
    </>
  );
}

function Tiles({ data, range }: { data: MetricSeries; range: Range }) {
  const calls = sum(data.calls);
  const latency = ms(data.total_p95 ?? 0).split(" ");
  return (
    <div className={`${s.tiles} mt16`}>
      <Tile
        label="Calls"
        value={int(calls)}
        unit="calls"
        note={`${Number((calls / MINUTES[range]).toPrecision(2))} per min`}
      />
      <Tile label="Latency, p95" value={latency[0]} unit={latency[1]} note="without a person’s time" />
      <Tile
        label="Failed"
        value={((sum(data.failed) / calls) * 100).toFixed(1)}
        unit="% of calls"
        note="refusals not counted"
      />
      <Tile
        label="Prompts"
        value={((sum(data.prompts) / calls) * 100).toFixed(1)}
        unit="per 100 calls"
        note="questions to a person"
      />
      <Tile
        label="Budget"
        value={`$${data.spent.toFixed(2)}`}
        unit={data.limit ? `of $${data.limit.toFixed(2)}` : ""}
        note={data.limit ? "" : "no limit is set"}
      />
    </div>
  );
}

function Tile({ label, value, unit, note }: { label: string; value: string; unit: string; note: string }) {
  return (
    <div>
      <div className={s.l}>{label}</div>
      <div className={s.v}>
        {value}
        <small>{unit}</small>
      </div>
      <div className="dim sm">{note}</div>
    </div>
  );
}

function Panel({
  title,
  sub,
  legend,
  children,
}: {
  title: string;
  sub: string;
  legend?: Series[];
  children: ReactNode;
}) {
  return (
    <section className="card">
      <header>
        <h2>{title}</h2>
        <span className="dim sm">{sub}</span>
        {legend && (
          <span className={`${s.legend} right`}>
            {legend.map((each) => (
              <span key={each.label}>
                <i style={{ background: `var(${each.colour})` }} />
                {each.label}
              </span>
            ))}
          </span>
        )}
      </header>
      {children}
    </section>
  );
}

const MANY_ERRORS = 8;

function ByKey({ title, by, range }: { title: string; by: "tool" | "client"; range: Range }) {
  const { data } = useQuery<{ groups: Group[] }>(`/metrics/summary?by=${by}&range=${range}`);
  return (
    <section className="card">
      <header>
        <h2>{title}</h2>
        <span className="dim sm">the busiest first</span>
      </header>
      <table className="tbl">
        <thead>
          <tr>
            <th>{by === "tool" ? "Tool" : "Client"}</th>
            <th className="r">Calls</th>
            <th className="r np">p50</th>
            <th className="r">p95</th>
            <th className="r">Not ok</th>
            <th className="r np">Prompts</th>
          </tr>
        </thead>
        <tbody>
          {(data?.groups ?? []).slice(0, 10).map((group) => (
            <tr key={group.key}>
              <td className="cutx">
                <Link className="link plain" href={`/calls?${by}=${encodeURIComponent(group.key)}`}>
                  {group.key || "unknown"}
                </Link>
              </td>
              <td className="r">{int(group.calls)}</td>
              <td className="r dim np">{ms(group.p50 ?? 0)}</td>
              <td className="r">{ms(group.p95 ?? 0)}</td>
              <td className={`r ${group.err > MANY_ERRORS ? "orange b" : "dim"}`}>{group.err.toFixed(1)} %</td>
              <td className="r dim np">{group.prompts.toFixed(1)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Errors({ errors }: { errors: Record<string, number> }) {
  const rows = Object.entries(errors).sort((a, b) => b[1] - a[1]);
  return (
    <section className="card">
      <header>
        <h2>Errors</h2>
        <span className="dim sm">by code</span>
      </header>
      {!rows.length && <p className="in-pad dim">None in this time.</p>}
      <table className="tbl">
        <tbody>
          {rows.map(([code, calls]) => (
            <tr key={code}>
              <td className="mono sm">
                <Link className="link" href={`/calls?q=${encodeURIComponent(code)}`}>
                  {code}
                </Link>
              </td>
              <td className="w40">
                <div className="meter fail">
                  <i style={{ width: `${(calls / rows[0][1]) * 100}%` }} />
                </div>
              </td>
              <td className="r">{count(calls, "call")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
