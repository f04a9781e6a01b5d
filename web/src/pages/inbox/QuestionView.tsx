/** One question: the sentence first, the evidence second, the answer last. */
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { IconArrowLeft, IconMailForward } from "@tabler/icons-react";
import type { Card, Provenance } from "../../api/types";
import { useNow } from "../../state/clock";
import { Danger, Time } from "../../ui/signs";
import { Diff } from "../../ui/Diff";
import { Arguments, Command, Effects } from "../../ui/Evidence";
import { count, lineCount, millis, ms, placeName } from "../../ui/format";
import { typing } from "../../ui/keys";
import { countHidden, Prose, Visible } from "../../ui/Visible";
import { AnswerBar } from "./AnswerBar";
import { EqualQuestions, useEqual } from "./EqualQuestions";
import { Files } from "./Files";
import { useReady } from "./useAnswer";
import s from "./Inbox.module.css";

export function QuestionView({ card, next }: { card: Card; next: () => void }) {
  const files = card.files;
  const [keep, setKeep] = useState(() => new Set(files.map((each) => each.path)));
  const [twoColumns, setTwoColumns] = useState(false);
  const equal = useEqual(card);
  const ready = useReady();
  const partial = card.kind === "trial" && files.length > 0;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!typing(event) && event.key === "v") setTwoColumns((before) => !before);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <article className={s.q} aria-labelledby="sentence">
      <div className={s.scroll}>
        <div className={s.inner}>
          <Head card={card} />
          {equal.length > 0 && <EqualQuestions card={card} equal={equal} ready={ready} next={next} />}
          <Sources provenance={card.provenance} />
          {card.trial && <TrialLine card={card} />}
          {files.some((each) => partial || each.diff) && (
            <Files
              files={files}
              workspace={card.workspace}
              keep={partial ? keep : undefined}
              setKeep={setKeep}
              twoColumns={twoColumns}
              setTwoColumns={setTwoColumns}
            />
          )}
          <Evidence card={card} shownAsDiff={files.some((each) => each.diff)} />
        </div>
      </div>
      <AnswerBar card={card} keep={partial ? keep : undefined} total={files.length} next={next} />
    </article>
  );
}

function Head({ card }: { card: Card }) {
  return (
    <>
      <div className="only-phone backrow">
        <Link href="/inbox" className="row mid">
          <IconArrowLeft size={18} aria-hidden />
          All questions
        </Link>
        <TimeLeft card={card} />
      </div>
      <div className="row wrap gap12">
        <Danger level={card.danger} chip />
        <span className="mid sm">{card.client}</span>
        {card.workspace && (
          <span className="mid sm mono" title={card.workspace}>
            {placeName(card.workspace)}
          </span>
        )}
        <span className="dim sm no-phone">
          session{" "}
          <Link className="link mono" href={`/calls?session=${encodeURIComponent(card.session)}`}>
            {card.session.slice(0, 12)}
          </Link>
        </span>
        <span className="dim sm">
          asked <Time at={millis(card.asked)} />
        </span>
        <span className="right no-phone">
          <TimeLeft card={card} />
        </span>
      </div>
      <h2 className={s.s} id="sentence">
        <Prose text={card.sentence} />
      </h2>
      <p className={s.why}>
        <span className="dim">Asked because:</span> <Visible text={card.why} />{" "}
        <Link className="link" href={`/policy/explain?approval=${encodeURIComponent(card.id)}`}>
          explain
        </Link>
      </p>
    </>
  );
}

const SOON_MS = 60_000;

function duration(left: number): string {
  const seconds = Math.floor(left / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

function TimeLeft({ card }: { card: Card }) {
  const now = useNow();
  if (!card.expires) return null;
  const left = Math.max(0, millis(card.expires) - now);
  const text = duration(left);
  return (
    <span
      className={`${s.left} ${left < SOON_MS ? s.soon : ""}`}
      title="After this the agent is told “timeout”, never “no”"
    >
      times out in {text}
    </span>
  );
}

function Sources({ provenance }: { provenance: Provenance[] }) {
  if (!provenance.length) return null;
  const title = provenance.some((each) => each.call_id || each.source)
    ? "Where these values came from"
    : "Nobody vouches for these values";
  return (
    <section className={s.prov} aria-label={title}>
      <div className="row b orange">
        <IconMailForward size={16} aria-hidden />
        {title}
      </div>
      <ul className="mt8">
        {provenance.map((each) => (
          <li key={`${each.parameter} ${each.value}`}>
            <span className="mono sm mid">{each.parameter}</span>
            <span className={s.v}>
              {each.value && (
                <code>
                  <Visible text={each.value} />
                </code>
              )}{" "}
              {each.why}
              {each.label && (
                <span className={`tag ml ${each.label === "untrusted" ? "hi" : ""}`}>{each.label}</span>
              )}{" "}
              {each.call_id && (
                <span className="mid sm nowrap">
                  read by{" "}
                  <Link className="link" href={`/calls/${each.call_id}`}>
                    {each.source || "a call"}
                  </Link>{" "}
                  {each.at && <Time at={millis(each.at)} />}
                </span>
              )}
              {each.excerpt && (
                <div className="mid sm">
                  “<Visible text={each.excerpt} />”
                </div>
              )}
              {each.lookalike && (
                <div className="red sm b">
                  Looks like <Visible text={each.lookalike} />, but is not.
                </div>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function TrialLine({ card }: { card: Card }) {
  const trial = card.trial!;
  const dropped = Array.isArray(trial.dropped) ? trial.dropped.join(", ") : trial.dropped;
  return (
    <section className="row wrap gap12 mt16 sm" aria-label="Trial run">
      {typeof trial.exit === "number" && (
        <span className={`tag ${trial.exit === 0 ? "ok" : "bad"}`}>exit {trial.exit}</span>
      )}
      <span className="mid num">ran {trial.ms ? `${ms(trial.ms)} ` : ""}on a copy-on-write layer</span>
      {trial.network === false && <span className="mid">no network</span>}
      {dropped && <span className="dim">scratch dropped: {dropped}</span>}
    </section>
  );
}

function Evidence({ card, shownAsDiff }: { card: Card; shownAsDiff: boolean }) {
  const command = card.args?.command;
  const apart = card.parts.length > 0 && card.kind !== "trial" && typeof command === "string";
  const hidden = Object.values(card.args ?? {}).reduce<number>((sum, value) => sum + countHidden(value), 0);
  const content = card.args?.content;
  const elsewhere: Record<string, string> =
    card.kind === "write" && shownAsDiff && typeof content === "string"
      ? { content: `shown above as a diff, ${count(lineCount(content), "line")}` }
      : {};
  return (
    <>
      {apart ? (
        <>
          <Command text={command} parts={card.parts} />
          {card.sandbox && (
            <p className="mid sm mt8">
              If allowed, it runs in the sandbox ({card.sandbox}): it can write only the places and reach only the hosts
              that are named above.
            </p>
          )}
        </>
      ) : (
        card.effects.length > 0 &&
        card.kind !== "trial" && (
          <section className="sect">
            <h2>What it would do</h2>
            <Effects effects={card.effects} />
          </section>
        )
      )}
      <section className="sect">
        <div className="row">
          <h2>
            All arguments of <code className="i">{card.tool}</code>
          </h2>
          {hidden > 0 && <span className="tag bad">{count(hidden, "invisible character")}, shown by name</span>}
        </div>
        <Arguments
          args={card.args}
          tainted={card.provenance.filter((each) => each.label === "untrusted").map((each) => each.parameter)}
          elsewhere={elsewhere}
        />
      </section>
      {card.trial?.preview && card.files.length === 0 && (
        <section className="card mt16">
          <header>
            <span className="b">What changed on trial</span>
          </header>
          <Diff text={card.trial.preview} />
        </section>
      )}
      {card.trial?.output && (
        <section className="sect">
          <h2>Output</h2>
          <pre className="pre" tabIndex={0}>
            <Visible text={card.trial.output} />
          </pre>
        </section>
      )}
      <p className="dim xs mt16">
        {card.channels.length > 1 && (
          <>Also asked in: {card.channels.filter((each) => each !== "console").join(", ")}. </>
        )}
        The first answer counts. Bound to <span className="mono">{card.digest.slice(0, 12)}</span> (tool, definition,
        arguments, person, policy version), used once.
      </p>
    </>
  );
}
