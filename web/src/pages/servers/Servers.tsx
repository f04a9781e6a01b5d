/** Servers: the MCP servers behind the runtime, their health, and tools whose definition changed. */
import { Link, useLocation } from "wouter";
import { IconArrowLeft, IconRefresh } from "@tabler/icons-react";
import { post, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import { usePhone } from "../../state/phone";
import { count, millis } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading, toast } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import { Pins } from "./Pins";
import { DOT, type Server, type ServerDetail } from "./types";

export default function Servers({ params }: { params: { name?: string } }) {
  const { data, error, reload } = useQuery<{ servers: Server[] }>("/servers");
  const phone = usePhone();
  const [, go] = useLocation();
  if (!data && error) return <Failed what="The servers" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.servers.length)
    return (
      <Empty title="No MCP servers yet">
        <p>Take over those that your clients already use. Toolreeve shows what it would change before it does.</p>
        <pre className="pre">toolreeve adopt --dry-run</pre>
        <Link className="bt mt8" href="/setup/clients">
          Look for clients
        </Link>
      </Empty>
    );
  const name = params.name ?? (phone ? undefined : data.servers[0].name);
  return (
    <div className={`split two ${name ? "open" : ""}`}>
      <div className="list">
        <ul>
          {data.servers.map((server) => (
            <li key={server.name}>
              <Link
                href={`/servers/${encodeURIComponent(server.name)}`}
                className="item"
                aria-current={server.name === name ? "true" : undefined}
              >
                <div className="row">
                  <span className={`dot ${DOT[server.state] ?? "warn"}`} aria-hidden />
                  <span className="b">{server.name}</span>
                  <span className="dim sm">{server.transport}</span>
                  <span className={`right sm ${DOT[server.state] === "ok" ? "dim" : "amber b"}`}>{server.word}</span>
                </div>
                <div className="row sm dim num mt4">{count(server.tools, "tool")}</div>
              </Link>
            </li>
          ))}
        </ul>
      </div>
      <div className="pane">{name && <ServerPane key={name} name={name} back={() => go("/servers")} />}</div>
    </div>
  );
}

function ServerPane({ name, back }: { name: string; back: () => void }) {
  const { data, error, reload } = useQuery<ServerDetail>(`/servers/${encodeURIComponent(name)}`);
  if (!data && error) return <Failed what={name} problem={error} retry={reload} />;
  if (!data) return <Loading />;
  const restart = async () => {
    try {
      await post(`/servers/${encodeURIComponent(name)}/restart`, {});
      toast(`${name} restarts`);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    invalidate("/servers");
  };
  return (
    <div className="pad">
      <button className="link only-phone backrow" onClick={back}>
        <span className="row">
          <IconArrowLeft size={16} aria-hidden />
          All servers
        </span>
      </button>
      <div className="row wrap gap12">
        <span className={`dot ${DOT[data.state] ?? "warn"}`} aria-hidden />
        <h2 className="tl">{data.name}</h2>
        <span className={DOT[data.state] === "ok" ? "mid" : "amber b"}>{data.word}</span>
        {data.since && (
          <span className="dim sm">
            since <Time at={millis(data.since)} />
          </span>
        )}
        <span className="right row">
          <button className="bt sm" onClick={() => void restart()}>
            <IconRefresh aria-hidden />
            Restart
          </button>
        </span>
      </div>
      <pre className="pre mt8" tabIndex={0}>
        <Visible text={data.target} />
      </pre>
      <Facts server={data} />
      <Pins server={name} pins={data.pins} />
      <Log name={name} />
    </div>
  );
}

function Facts({ server }: { server: ServerDetail }) {
  const rows: [string, React.ReactNode][] = [
    [
      "Trust",
      server.trusted ? (
        "trusted"
      ) : (
        <>
          untrusted
          <span className="dim">: its tools are HIGH unless you say otherwise, its results are labelled untrusted</span>
        </>
      ),
    ],
    ["Login", server.auth],
    ["Sandbox", server.sandbox],
    ["Configured in", server.file && <span className="mono sm">{server.file}</span>],
    ["Tools", server.tool_names?.length ? <span className="mono sm wrapx">{server.tool_names.join(", ")}</span> : null],
    ["Problem", server.problem && <span className="orange">{server.problem}</span>],
  ];
  return (
    <dl className="kv mt16">
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Log({ name }: { name: string }) {
  const { data } = useQuery<{ lines: string[] }>(`/servers/${encodeURIComponent(name)}/log`);
  return (
    <section className="sect">
      <h2>Log</h2>
      <div className="card">
        <div className="log" tabIndex={0} role="log" aria-label={`Log of ${name}`}>
          {data?.lines.length ? (
            data.lines.map((line, index) => (
              <div key={index}>
                <Visible text={line} />
              </div>
            ))
          ) : (
            <span className="dim">The server wrote nothing to its error output.</span>
          )}
        </div>
      </div>
    </section>
  );
}
