/** Access: tokens and browser sessions; adding one is a command, so that its secret is shown once, in a terminal. */
import { request, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import { millis } from "../../ui/format";
import { Time } from "../../ui/signs";
import { Failed, Loading, toast } from "../../ui/states";

type Token = Schemas["TokenRow"];

export function Tokens() {
  const { data, error, reload } = useQuery<{ tokens: Token[] }>("/tokens");
  if (!data && error) return <Failed what="Access" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  return (
    <>
      <p className="mid prose">
        Without a token the server answers this machine only. A token names a person, a role and what it may do; it is
        stored hashed, and its secret is printed once:
      </p>
      <pre className="pre mt8">toolreeve tokens add ada --name phone --scope read --scope approve</pre>
      {data.tokens.length > 0 && (
        <div className="card mt16 scrollx">
          <table className="tbl">
            <thead>
              <tr>
                <th>Name</th>
                <th className="np">User</th>
                <th className="np">Role</th>
                <th className="np">Scopes</th>
                <th className="np r">Ends</th>
                <th>
                  <span className="sr">Action</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.tokens.map((token) => (
                <Row key={token.id} token={token} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

const BROWSERS = [/(Edg)e?\//, /(Firefox)\//, /(Chrom)(?:e|ium)\//, /(Safari)\//];
const BROWSER_NAMES: Record<string, string> = { Edg: "Edge", Chrom: "Chrome" };
const SYSTEMS = /Android|iPhone|iPad|Windows|Mac OS X|Linux/;

/** A browser by its user agent, whose whole text is the cell's title. */
function browserName(agent: string): string {
  const found = BROWSERS.map((each) => each.exec(agent)?.[1]).find(Boolean);
  const name = found ? (BROWSER_NAMES[found] ?? found) : "A browser";
  const system = SYSTEMS.exec(agent)?.[0].replace("Mac OS X", "macOS");
  return system ? `${name} on ${system}` : name;
}

function Row({ token }: { token: Token }) {
  const revoke = async () => {
    try {
      await request("DELETE", `/tokens/${encodeURIComponent(token.id)}`);
      toast(`Revoked: ${token.name}`);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    invalidate("/tokens");
  };
  return (
    <tr>
      <td className="b cutx" title={token.name}>
        {token.kind === "session" ? browserName(token.name) : token.name || token.id.slice(0, 8)}
        <div className="only-phone dim xs wrapx">{`${token.user}: ${token.scopes.join(", ")}`}</div>
      </td>
      <td className="np">{token.user}</td>
      <td className="np">{token.role}</td>
      <td className="np mono sm">{token.scopes.join(" ")}</td>
      <td className="np r dim">{token.expires ? <Time at={millis(token.expires)} /> : "never"}</td>
      <td className="r">
        <button className="bt sm" onClick={() => void revoke()}>
          Revoke
        </button>
      </td>
    </tr>
  );
}
