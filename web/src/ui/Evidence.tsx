/** What a call says and would do: its arguments, its effects, its command taken apart. */
import { IconShieldHalf } from "@tabler/icons-react";
import type { Part, Target } from "../api/types";
import { count, plainJson } from "./format";
import { Prose, Visible } from "./Visible";
import s from "./Evidence.module.css";

interface ArgumentsProps {
  args: Record<string, unknown> | null;
  tainted?: string[];
  /** Arguments that the page shows whole elsewhere, with the words that say where. */
  elsewhere?: Record<string, string>;
}

export function Arguments({ args, tainted = [], elsewhere = {} }: ArgumentsProps) {
  if (args === null) return <p className="dim">Hidden for your role: a viewer sees no arguments of others.</p>;
  const names = Object.keys(args);
  if (names.length === 0) return <p className="dim">None.</p>;
  return (
    <dl className="args">
      {names.map((name) => (
        <div key={name} className={tainted.includes(name) ? "taint" : ""}>
          <dt>
            <Visible text={name} />
          </dt>
          <dd>
            <Value value={args[name]} elsewhere={elsewhere[name]} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value, elsewhere }: { value: unknown; elsewhere?: string }) {
  if (elsewhere) return <span className="dim">{elsewhere}</span>;
  if (value === null || value === undefined) return <span className="dim">not given</span>;
  return <Visible text={plainJson(value)} />;
}

export function Effects({ effects }: { effects: Target[] }) {
  return (
    <div className="fx">
      {effects.map((effect, index) => (
        <div key={index} className={s.effect}>
          <span className={`k ${effect.kind}`}>{effect.kind}</span>
          <span>
            <code className="i">
              <Visible text={effect.target} />
            </code>
            {effect.reach === "below" && <span className="dim sm"> and all below</span>}
          </span>
        </div>
      ))}
    </div>
  );
}

export function Command({ text, parts }: { text: string; parts: Part[] }) {
  const unknown = parts.filter((part) => !part.known).length;
  return (
    <section className="card mt16" aria-label="The command, taken apart">
      <header>
        <IconShieldHalf size={15} aria-hidden className="dim" />
        <span className="b">The command, taken apart</span>
        <span className="dim sm right no-phone">
          {unknown ? `${unknown} of ${count(parts.length, "part")} not known` : "all of it is known"}
        </span>
      </header>
      <pre className="pre flat" tabIndex={0}>
        <Visible text={text} />
      </pre>
      <div className={s.tree}>
        {parts.map((part, index) => (
          <CommandPart key={index} part={part} />
        ))}
      </div>
    </section>
  );
}

function CommandPart({ part }: { part: Part }) {
  const line = part.argv.join(" ");
  const effects = part.effects.filter((each) => each.kind !== "exec" || each.target !== line);
  return (
    <div className={s.node}>
      <div className="row wrap gap4">
        {part.joined && <span className={s.join}>{part.joined}</span>}
        <code>
          <b>
            <Visible text={part.argv[0] ?? ""} />
          </b>{" "}
          <Visible text={part.argv.slice(1).join(" ")} />
        </code>
        <span className={`tag ml ${part.known ? "" : "warn"}`}>{part.known ? "known" : "not known"}</span>
      </div>
      {part.why && (
        <div className="mid sm">
          <Prose text={part.why} />
        </div>
      )}
      {effects.length > 0 && <Effects effects={effects} />}
    </div>
  );
}
