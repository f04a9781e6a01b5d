/** One tool: its form, what would be decided as you type, and a run on the same road as an agent's call. */
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { Validator, type Schema } from "@cfworker/json-schema";
import { IconArrowLeft, IconPlayerPlay } from "@tabler/icons-react";
import { post, Problem } from "../../api/client";
import { useQuery } from "../../api/query";
import { Usage } from "../../ui/Usage";
import { int } from "../../ui/format";
import { Danger, Decided } from "../../ui/signs";
import { Failed, Loading, toast } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import { Layers } from "../policy/Layers";
import { useExplain, verdictOf, type Explanation } from "../policy/useExplain";
import { ArgumentForm, type FieldError } from "./ArgumentForm";
import type { ToolDetail } from "./types";
import s from "./Tools.module.css";

export function ToolPane({ name, back }: { name: string; back: () => void }) {
  const { data, error, reload } = useQuery<ToolDetail>(`/tools/${encodeURIComponent(name)}`);
  if (!data && error) return <Failed what={name} problem={error} retry={reload} />;
  if (!data) return <Loading />;
  return <Tool tool={data} back={back} />;
}

function check(tool: ToolDetail, values: Record<string, unknown>): FieldError[] {
  const found = new Validator(tool.input_schema as Schema, "2020-12", false).validate(values);
  return found.errors
    .filter((each) => each.keyword !== "properties")
    .map((each) => ({
      name: /#\/([^/]+)/.exec(each.instanceLocation)?.[1] ?? /"([^"]+)"/.exec(each.error)?.[1] ?? "",
      message: each.keyword === "required" ? "needed" : each.error,
    }));
}

function Tool({ tool, back }: { tool: ToolDetail; back: () => void }) {
  const [values, setValues] = useState<Record<string, unknown>>(tool.examples[0] ?? {});
  const errors = useMemo(() => check(tool, values), [tool, values]);
  const explained = useExplain(tool.name, values, errors.length === 0);
  return (
    <div className="pad">
      <button className="link only-phone backrow" onClick={back}>
        <span className="row">
          <IconArrowLeft size={18} aria-hidden />
          All tools
        </span>
      </button>
      <div className="row wrap gap12">
        <h2 className="tl">{tool.name}</h2>
        <Danger level={tool.danger} chip />
        {tool.read_only && <span className="tag">read only</span>}
        {tool.idempotent && <span className="tag">idempotent</span>}
        {tool.server && !tool.trusted && <span className="tag warn">untrusted server {tool.server}</span>}
      </div>
      <p className="mid mt8 prose">
        <Visible text={tool.description} />
      </p>
      <p className="dim sm mt8 num">
        {int(tool.tokens)} tokens in every prompt that offers it. <Usage by="tool" name={tool.name} />{" "}
        <Link className="link" href={`/calls?tool=${encodeURIComponent(tool.name)}`}>
          See its calls
        </Link>
      </p>
      <div className={`${s.try} mt16`}>
        <ArgumentForm tool={tool} values={values} setValues={setValues} errors={errors} />
        <div className="col">
          <Preview explained={explained} errors={errors} />
          <Run tool={tool} values={values} explained={explained} valid={errors.length === 0} />
          <section className="card">
            <header>
              <h3>Command line</h3>
            </header>
            <pre className="pre flat" tabIndex={0}>
              {commandLine(tool.name, values)}
            </pre>
          </section>
        </div>
      </div>
    </div>
  );
}

const quote = (text: string) => (/^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function commandLine(tool: string, values: Record<string, unknown>): string {
  const words = Object.entries(values).map(
    ([name, value]) => `${name}=${quote(typeof value === "string" ? value : JSON.stringify(value))}`,
  );
  return ["toolreeve call", tool, ...words].join(" ");
}

function Preview({ explained, errors }: { explained: Explanation | Problem | undefined; errors: FieldError[] }) {
  const missing = errors.map((each) => each.name).filter(Boolean);
  return (
    <section className="card" aria-live="polite">
      <header>
        <h3>What would be decided</h3>
        <span className="right dim sm">as you type</span>
      </header>
      <div className="in-pad col">
        {errors.length > 0 ? (
          <p className="mid">Not judged yet: {missing.join(", ") || "the arguments"} missing or wrong.</p>
        ) : explained instanceof Problem ? (
          <p className="red">{explained.message}</p>
        ) : explained ? (
          <>
            <div className="row wrap gap12">
              <Decided effect={explained.effect}>
                <b className="lgx">{verdictOf(explained)}</b>
              </Decided>
              <Danger level={explained.danger} />
            </div>
            <p>
              <Visible text={explained.reason} />
            </p>
            {explained.rule && (
              <p className="sm">
                <Link className="link" href={`/policy?rule=${encodeURIComponent(explained.rule)}`}>
                  {explained.rule}
                </Link>{" "}
                <span className="dim mono">{explained.place}</span>
              </p>
            )}
            <Layers layers={explained.layers} hit={explained.layer} />
          </>
        ) : (
          <p className="dim">Judging…</p>
        )}
      </div>
    </section>
  );
}

interface RunProps {
  tool: ToolDetail;
  values: Record<string, unknown>;
  explained: Explanation | Problem | undefined;
  valid: boolean;
}

function Run({ tool, values, explained, valid }: RunProps) {
  const [, go] = useLocation();
  const [out, setOut] = useState<string | null>(null);
  const [running, setRunning] = useState(false);
  const effect = explained && !(explained instanceof Problem) ? explained.effect : undefined;
  const run = async () => {
    setRunning(true);
    setOut(null);
    if (effect === "ask") toast("Asked. The question is in the inbox.", "Open", () => go("/inbox"));
    try {
      const result = await post<unknown>(`/tools/${encodeURIComponent(tool.name)}/call`, {
        args: values,
        session: "console",
      });
      setOut(JSON.stringify(result, null, 2));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setOut(JSON.stringify(problem.body.error ?? problem.body, null, 2));
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <button className="bt" disabled={!valid || !effect || effect === "deny" || running} onClick={() => void run()}>
        <IconPlayerPlay aria-hidden />
        {running
          ? effect === "ask"
            ? "Waits for an answer…"
            : "Running…"
          : effect === "ask"
            ? "Run, and be asked"
            : "Run"}
      </button>
      <p className="dim sm">Runs as you, on the same road as an agent’s call, and is recorded.</p>
      {out && (
        <section className="card">
          <header>
            <h3>Result</h3>
          </header>
          <pre className="pre flat" tabIndex={0}>
            <Visible text={out} />
          </pre>
        </section>
      )}
    </>
  );
}
