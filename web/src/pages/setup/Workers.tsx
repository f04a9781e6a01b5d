/** Workers: who serves which pool, and how many calls wait for one. */
import { useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import { count, millis } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";

export function Workers() {
  const { data, error, reload } = useQuery<Schemas["WorkerList"]>("/workers");
  if (!data && error) return <Failed what="The workers" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.nats)
    return (
      <Empty title="Every call runs on this machine">
        <p>Pools of workers run calls elsewhere. Name the pools in the table [workers], and start a worker there:</p>
        <pre className="pre">toolreeve worker --pool NAME</pre>
      </Empty>
    );
  return (
    <>
      {Object.entries(data.waiting).map(([pool, waiting]) => (
        <Pool key={pool} name={pool} waiting={waiting} workers={data.workers.filter((each) => each.pool === pool)} />
      ))}
    </>
  );
}

function Pool({ name, waiting, workers }: { name: string; waiting: number; workers: Schemas["WorkerRow"][] }) {
  return (
    <section className="sect">
      <h2>{name}</h2>
      <p className={waiting > 0 || !workers.length ? "amber" : "mid"}>
        {count(workers.length, "worker")}, {count(waiting, "call")} waiting
      </p>
      {workers.length > 0 && (
        <div className="card mt8 scrollx">
          <table className="tbl">
            <thead>
              <tr>
                <th>Worker</th>
                <th>State</th>
                <th className="r">Running</th>
                <th className="np">Version</th>
                <th className="np r">Since</th>
              </tr>
            </thead>
            <tbody>
              {workers.map((worker) => (
                <tr key={worker.name}>
                  <td className="mono sm cutx">{worker.name}</td>
                  <td>{worker.state}</td>
                  <td className="r num">{`${worker.running}/${worker.capacity}`}</td>
                  <td className="np">{worker.version}</td>
                  <td className="np r dim">
                    <Time at={millis(worker.since)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
