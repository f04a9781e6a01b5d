/** Setup: what is checked here, which clients come through here, and who may enter. */
import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { IconAlertTriangle, IconCheck, IconX } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import { Copy } from "../../ui/controls";
import { count } from "../../ui/format";
import { Failed, Loading } from "../../ui/states";
import { Tabs } from "../../ui/Tabs";
import { Prose } from "../../ui/Visible";
import { Clients } from "./Clients";
import { Tokens } from "./Tokens";
import { Workers } from "./Workers";

const ApiDocs = lazy(() => import("./ApiDocs"));

const TABS = [
  { path: "/setup", label: "Checks" },
  { path: "/setup/clients", label: "Clients" },
  { path: "/setup/tokens", label: "Access" },
  { path: "/setup/workers", label: "Workers" },
  { path: "/setup/api", label: "API" },
];

export default function Setup({ params }: { params: { tab?: string } }) {
  const current = params.tab ? `/setup/${params.tab}` : "/setup";
  return (
    <>
      <Tabs label="Setup" tabs={TABS} current={current} />
      <div className="pad">
        <Suspense fallback={<Loading />}>
          {params.tab === "clients" ? (
            <Clients />
          ) : params.tab === "tokens" ? (
            <Tokens />
          ) : params.tab === "workers" ? (
            <Workers />
          ) : params.tab === "api" ? (
            <ApiDocs />
          ) : (
            <Doctor />
          )}
        </Suspense>
      </div>
    </>
  );
}

type Check = Schemas["DoctorCheck"];

const SIGN = { ok: ["st ok", IconCheck], warn: ["st amber", IconAlertTriangle], fail: ["st deny", IconX] } as const;

export function CheckSign({ state }: { state: keyof typeof SIGN }) {
  const [look, Icon] = SIGN[state];
  return (
    <span className={look}>
      <Icon aria-hidden />
      <span className="sr">{state}</span>
    </span>
  );
}

function Doctor() {
  const { data, error, reload, loading } = useQuery<{ checks: Check[] }>("/doctor");
  if (!data && error) return <Failed what="The checks" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  const open = data.checks.filter((check) => check.state !== "ok");
  const areas = [...new Set(data.checks.map((check) => check.area))];
  return (
    <>
      <div className="row wrap">
        <p className="lgx">
          {data.checks.length
            ? `${data.checks.length - open.length} of ${count(data.checks.length, "check")} fine`
            : "This server runs no checks"}
        </p>
        <button className="bt sm right" disabled={loading} onClick={reload}>
          Check again
        </button>
      </div>
      {open.length > 0 && (
        <section className="card mt16">
          <header>
            <h2>To do</h2>
          </header>
          <ul className="todo">
            {open.map((check) => (
              <li key={check.area + check.name}>
                <CheckSign state={check.state} />
                <div>
                  <span className="b">{check.name}</span> <span className="dim sm">{check.area}</span>
                  <p className="mid">
                    <Prose text={check.found} />
                  </p>
                </div>
                {check.fix && (
                  <div className="row sm mid">
                    <span className="wrapx">
                      <Prose text={check.fix} />
                    </span>
                    {commandIn(check.fix) && (
                      <Copy text={commandIn(check.fix)} label={`Copy the command for ${check.name}`} />
                    )}
                  </div>
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
      <div className="g2 mt16">
        {areas.map((area) => (
          <Area key={area} name={area} checks={data.checks.filter((check) => check.area === area)} />
        ))}
      </div>
      <p className="dim sm mt16">
        The same in a terminal: <code>toolreeve doctor</code>. Settings and where each comes from:{" "}
        <code>toolreeve config show --origin</code>.{" "}
        <Link className="link" href="/policy">
          The policy
        </Link>
      </p>
    </>
  );
}

const commandIn = (text: string) => /`([^`]+)`/.exec(text)?.[1] ?? "";

function Area({ name, checks }: { name: string; checks: Check[] }) {
  return (
    <section className="card">
      <header>
        <h2 className="first-upper">{name}</h2>
        <span className="right dim sm">
          {checks.filter((check) => check.state === "ok").length} of {checks.length} fine
        </span>
      </header>
      <table className="tbl">
        <tbody>
          {checks.map((check) => (
            <tr key={check.name}>
              <td className="w24">
                <CheckSign state={check.state} />
              </td>
              <td className="nm">{check.name}</td>
              <td className="mid sm">
                <Prose text={check.found} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
