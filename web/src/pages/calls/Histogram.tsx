/** Calls of the last six hours as bars; what failed or was refused on top, in red. */
import { memo } from "react";
import { useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import s from "./Calls.module.css";

type Bucket = Schemas["HistogramBucket"];

const LEAST = 4;

export const Histogram = memo(function Histogram() {
  const { data } = useQuery<{ buckets: Bucket[] }>("/calls/histogram");
  const buckets = data?.buckets ?? [];
  const bad = (each: Bucket) => each.failed + each.refused;
  const top = Math.max(LEAST, ...buckets.map((each) => each.done + bad(each)));
  const step = buckets.length > 1 ? Math.round((buckets[1].t - buckets[0].t) / 60) : 0;
  return (
    <>
      <div
        className={s.histo}
        role="img"
        aria-label={`Calls in the last 6 hours, at most ${top} in ${step} minutes; failed and refused in red`}
      >
        {buckets.map((each) => (
          <span key={each.t}>
            <u className={s.e} style={{ height: `${(bad(each) / top) * 100}%` }} />
            <u style={{ height: `${(each.done / top) * 100}%` }} />
          </span>
        ))}
      </div>
      <div className={`${s.hx} num`} aria-hidden>
        <span>6 h ago</span>
        <span>
          calls per {step} min, at most {top}; red: failed or refused
        </span>
        <span>now</span>
      </div>
    </>
  );
});
