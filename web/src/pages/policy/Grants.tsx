/** Answers that still hold: what a session was granted, and the button that ends it. */
import { request, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import { int, millis } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Empty, Failed, Loading, toast } from "../../ui/states";
import { Visible } from "../../ui/Visible";

interface Grant {
  id: string;
  tool: string;
  covers: string;
  user: string;
  session: string;
  client: string;
  granted_by: string;
  granted_at: number;
  expires: number | null;
  uses: number | null;
}

export function Grants() {
  const { data, error, reload } = useQuery<{ grants: Grant[] }>("/policy/grants");
  if (!data && error) return <Failed what="Grants" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.grants.length)
    return (
      <Empty title="No grant holds">
        <p>When you answer a question with “This session”, what you granted is listed here until the session ends.</p>
      </Empty>
    );
  const withdraw = async (grant: Grant) => {
    try {
      await request("DELETE", `/policy/grants/${encodeURIComponent(grant.id)}`);
      toast("Withdrawn");
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    invalidate("/policy/grants");
  };
  return (
    <>
      <p className="mid">Answers that still hold. Each ends with its session.</p>
      <div className="card mt16 scrollx">
        <table className="tbl">
          <thead>
            <tr>
              <th>What</th>
              <th className="np">Session</th>
              <th className="np">By</th>
              <th className="r">Uses left</th>
              <th className="r np">Since</th>
              <th>
                <span className="sr">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.grants.map((grant) => (
              <tr key={grant.id}>
                <td className="wrapx">
                  <span className="b">{grant.tool}</span>{" "}
                  <span className="mono sm">
                    <Visible text={grant.covers} />
                  </span>
                </td>
                <td className="np mono sm">{grant.session.slice(0, 12)}</td>
                <td className="np">{grant.granted_by}</td>
                <td className="r">{grant.uses === null ? "no limit" : int(grant.uses)}</td>
                <td className="r dim np">
                  <Time at={millis(grant.granted_at)} />
                </td>
                <td className="r">
                  <button className="bt sm" onClick={() => void withdraw(grant)}>
                    Withdraw
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
