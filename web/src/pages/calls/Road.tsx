/** The road of a call: its stages, how each ended, and the time each took. A person's time is hatched and not counted. */
import type { CallDetail, Stage } from "../../api/types";
import { ms } from "../../ui/format";
import s from "./Calls.module.css";

/** The share of the width that a person's wait gets, however long it was. */
const WAIT_SHARE = 0.16;

interface Bar {
  left: number;
  width: number;
}

function layOut(stages: Stage[]): Map<string, Bar> {
  const work = stages.filter((each) => each.name !== "approve").reduce((sum, each) => sum + (each.ms ?? 0), 0) || 1;
  const waited = (stages.find((each) => each.name === "approve")?.ms ?? 0) > 0;
  const share = waited ? WAIT_SHARE : 0;
  const bars = new Map<string, Bar>();
  let left = 0;
  for (const stage of stages) {
    const width = stage.name === "approve" ? share : ((stage.ms ?? 0) / work) * (1 - share);
    bars.set(stage.name, { left: Math.min(0.99, left), width });
    left += width;
  }
  return bars;
}

export function Road({ call }: { call: CallDetail }) {
  const bars = layOut(call.stages);
  const work = call.stages.reduce((sum, each) => sum + (each.name === "approve" ? 0 : (each.ms ?? 0)), 0);
  const ran = call.stages.some((each) => each.name === "execute" && each.state !== "skipped");
  return (
    <section className="sect">
      <div className="row">
        <h2>The road</h2>
        <span className="right dim sm num">
          {ms(work)} of work{call.wait_ms > 0 && `, ${ms(call.wait_ms)} of a person’s time (not counted)`}
        </span>
      </div>
      <div>
        {call.stages.map((stage) => (
          <Row
            key={stage.name}
            stage={stage}
            bar={bars.get(stage.name)!}
            skipped={ran ? "not needed" : "not reached"}
          />
        ))}
      </div>
    </section>
  );
}

/** What a stage did, where the record has no words of its own. */
const NOTES: Record<string, string> = {
  validate: "the arguments fit the schema",
  admit: "within its limits; a change is announced to the record",
  execute: "ran to its end",
};

const LOOK = { done: "", failed: s.fail, skipped: s.skip };

function Row({ stage, bar, skipped }: { stage: Stage; bar: Bar; skipped: string }) {
  const drawn = stage.ms !== null && stage.ms > 0;
  const look = stage.state === "failed" ? s.fail : stage.name === "approve" ? s.wait : "";
  return (
    <div className={`${s.rd} ${LOOK[stage.state]}`}>
      <span className={s.rn}>{stage.name}</span>
      <span className={s.rt} title={stage.note}>
        {stage.state === "skipped" ? skipped : stage.note || NOTES[stage.name]}
      </span>
      <span className={s.track}>
        {drawn && (
          <i className={`${s.segB} ${look}`} style={{ left: `${bar.left * 100}%`, width: `${bar.width * 100}%` }} />
        )}
      </span>
      <span className={`${s.rm} num`}>{stage.ms === null ? "" : ms(stage.ms)}</span>
    </div>
  );
}
