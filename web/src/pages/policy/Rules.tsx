/** The rules in the order of their force: the floor on top, the mode's default at the end. */
import { Fragment, useState } from "react";
import { Link, useSearch } from "wouter";
import { IconChevronDown, IconChevronRight, IconLock } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import { int } from "../../ui/format";
import { Decided, Time } from "../../ui/signs";
import { Failed, Loading } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import type { HitList, Rule, RuleList } from "./types";

type Hits = HitList["hits"][number];

const DEFAULTS: Record<string, string> = {
  default: "safe and low calls run unasked; medium, high and critical ones are asked for",
  accept_edits: "edits of files run unasked as well",
  plan: "only read-only calls run",
  bypass: "everything runs unasked, above the floor",
  strict: "every call is asked for",
  dont_ask: "what would be asked for is denied",
};

export function Rules({ query }: { query: ReturnType<typeof useQuery<RuleList>> }) {
  const { data, error, reload } = query;
  const search = useSearch();
  const hits = useQuery<HitList>("/policy/hits").data;
  const hitsOf = (name: string) => hits?.hits.find((each) => each.rule === name);
  const [open, setOpen] = useState(new URLSearchParams(search).get("rule"));
  if (!data && error) return <Failed what="The policy" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  const own = data.rules.filter((rule) => rule.origin !== "floor");
  return (
    <>
      <div className="row wrap">
        <p className="mid">
          Read from the top: deny beats ask beats allow, whatever the file. A project’s file can only tighten.
        </p>
        <span className="right row">
          <span className="dim sm">Mode</span>
          <span className="tag">{data.mode}</span>
          <span className="dim sm">version</span>
          <span className="mono sm">{data.version.slice(0, 8)}</span>
        </span>
      </div>
      <div className="card mt16 scrollx">
        <table className="tbl">
          <thead>
            <tr>
              <th>Rule</th>
              <th>Decision</th>
              <th className="np">When</th>
              <th className="r" title={hits && !hits.whole ? "of the newest calls" : undefined}>
                Calls, 7 d
              </th>
              <th className="np">Last</th>
              <th className="np">Origin</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <td>
                <span className="rowbtn">
                  <IconLock size={14} aria-hidden />
                  the floor
                </span>
              </td>
              <td>
                <Decided effect="deny" />
              </td>
              <td className="mid np">
                own state and policy files, sensitive places, network guard, changed tool definitions
              </td>
              <HitCells hits={hitsOf("floor")} />
              <td className="dim np nowrap">not removable</td>
            </tr>
            {own.map((rule) => (
              <RuleRow
                key={rule.id}
                rule={rule}
                hits={hitsOf(rule.id)}
                open={open === rule.id}
                toggle={() => setOpen(open === rule.id ? null : rule.id)}
              />
            ))}
            <tr>
              <td className="b">mode’s default</td>
              <td className="dim sm nowrap">by danger</td>
              <td className="mid np">{DEFAULTS[data.mode] ?? data.mode}</td>
              <HitCells hits={hitsOf("mode")} />
              <td className="dim np nowrap">mode {data.mode}</td>
            </tr>
          </tbody>
        </table>
      </div>
      {own.length === 0 && (
        <p className="dim sm mt16">
          No rules of your own: the mode decides alone. Answer “always” in the inbox, or write some in{" "}
          <Link className="link" href="/policy/simulate">
            the editor
          </Link>
          .
        </p>
      )}
    </>
  );
}

function HitCells({ hits }: { hits: Hits | undefined }) {
  return (
    <>
      <td className="r num">{hits ? int(hits.calls) : <span className="dim">0</span>}</td>
      <td className="np dim nowrap">{hits?.last ? <Time at={Date.parse(hits.last)} short /> : "–"}</td>
    </>
  );
}

function RuleRow({ rule, hits, open, toggle }: { rule: Rule; hits?: Hits; open: boolean; toggle: () => void }) {
  const place = rule.file ? `${rule.file}${rule.line ? `:${rule.line}` : ""}` : "built in";
  return (
    <Fragment>
      <tr>
        <td>
          <button className="rowbtn b" aria-expanded={open} onClick={toggle}>
            {open ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
            {rule.id}
          </button>
        </td>
        <td>
          <Decided effect={rule.effect} />
        </td>
        <td className="mid np mono sm wrapx">
          <Visible text={rule.what} />
        </td>
        <HitCells hits={hits} />
        <td className="np nowrap dim">
          <span title={place}>{place.split("/").at(-1)}</span>
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={6} className="sub">
            <div className="row wrap gap16 top">
              <pre className="pre grow" tabIndex={0}>
                <Visible text={rule.what} />
              </pre>
              <dl className="kv grow">
                <dt>Why</dt>
                <dd>{rule.reason || <span className="dim">no reason given</span>}</dd>
                <dt>Where</dt>
                <dd className="mono sm">{place}</dd>
              </dl>
            </div>
          </td>
        </tr>
      )}
    </Fragment>
  );
}
