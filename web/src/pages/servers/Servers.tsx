/** Servers: the MCP servers behind the runtime, their health, and tools whose definition changed. */
import { Link, useLocation } from "wouter";
import { IconArrowLeft, IconLogin2, IconRefresh } from "@tabler/icons-react";
import { post, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import { usePhone } from "../../state/phone";
import { count } from "../../ui/format";
import { Empty, Failed, Loading, toast } from "../../ui/states";
import { Usage } from "../../ui/Usage";
import { Visible } from "../../ui/Visible";
import { Pins } from "./Pins";
import { dotOf, wordLook, type Server, type ServerDetail } from "./types";

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
                  <span className={`dot ${dotOf(server)}`} aria-hidden />
                  <span className="b">{server.name}</span>
                  <span className="dim sm">{server.transport}</span>
                  <span className={`right sm ${wordLook(server)}`}>{server.word}</span>
                </div>
                <div className="sm dim num mt4">
                  {count(server.tools, "tool")}. <Usage by="server" name={server.name} />
                </div>
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
  const act = async (name: "restart" | "login", done: (answer: { url?: string }) => void) => {
    try {
      done(await post<{ url?: string }>(`/servers/${encodeURIComponent(data.name)}/${name}`, {}));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    invalidate("/servers");
  };
  const restart = () => act("restart", () => toast(`${data.name} restarts`));
  const logIn = () =>
    act("login", ({ url }) => (url ? void open(url, "_blank", "noopener") : toast("No login is needed")));
  return (
    <div className="pad">
      <button className="link only-phone backrow" onClick={back}>
        <span className="row">
          <IconArrowLeft size={16} aria-hidden />
          All servers
        </span>
      </button>
      <div className="row wrap gap12">
        <span className={`dot ${dotOf(data)}`} aria-hidden />
        <h2 className="tl">{data.name}</h2>
        <span className={wordLook(data)}>{data.word}</span>
        <span className="right row">
          {data.word === "login needed" && (
            <button className="bt sm prim" onClick={() => void logIn()}>
              <IconLogin2 aria-hidden />
              Log in to {data.name}
            </button>
          )}
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
      <Log name={name} lines={data.log} />
    </div>
  );
}

function Facts({ server }: { server: ServerDetail }) {
  const rows: [string, React.ReactNode][] = [
    [
      "Trust",
      server.trust ? (
        "trusted"
      ) : (
        <>
          untrusted
          <span className="dim">: its tools are HIGH unless you say otherwise, its results are labelled untrusted</span>
        </>
      ),
    ],
    ["Tools", count(server.tools, "tool")],
    ["Last 7 d", <Usage key="usage" by="server" name={server.name} />],
    ["Configured in", server.file && <span className="mono sm">{server.file}</span>],
    ["Problem", server.problem && <span className="orange">{server.problem}</span>],
    ["Found", server.problems.length > 0 && server.problems.join("; ")],
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

function Log({ name, lines }: { name: string; lines: string[] }) {
  return (
    <section className="sect">
      <h2>Log</h2>
      <div className="card">
        <div className="log" tabIndex={0} role="log" aria-label={`Log of ${name}`}>
          {lines.length ? (
            lines.map((line, index) => (
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
