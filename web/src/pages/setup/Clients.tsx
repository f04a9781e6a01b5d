/** Clients of this machine: adopted or not, with the change an adoption would make. */
import { useQuery } from "../../api/query";
import { Copy } from "../../ui/controls";
import { Diff } from "../../ui/Diff";
import { Empty, Failed, Loading } from "../../ui/states";

interface Client {
  client: string;
  state: "found" | "settled";
  file: string;
  servers: string[];
  problem: string;
  preview: string | null;
  command: string;
}

const STATE: Record<string, [string, string]> = {
  found: ["tag warn", "not adopted"],
  settled: ["tag ok", "nothing to adopt"],
};

export function Clients() {
  const { data, error, reload } = useQuery<{ clients: Client[] }>("/clients");
  if (!data && error) return <Failed what="The clients" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.clients.length)
    return (
      <Empty title="No client found">
        <p>
          Toolreeve looks for the settings of Claude Code, Codex, Cursor, Gemini CLI, Zed, VS Code and others. Install
          one, or connect any MCP client by hand:
        </p>
        <pre className="pre">{'{"command": "toolreeve", "args": ["mcp"]}'}</pre>
      </Empty>
    );
  return (
    <>
      <p className="mid prose">
        An adopted client reaches its MCP servers through Toolreeve, so that every call travels the same road. What a
        client does with its own built-in tools is seen only where a hook is set.
      </p>
      <div className="card mt16 scrollx">
        <table className="tbl">
          <thead>
            <tr>
              <th>Client</th>
              <th>State</th>
              <th className="np">Servers</th>
              <th className="np">Settings</th>
            </tr>
          </thead>
          <tbody>
            {data.clients.map((client) => (
              <Row key={client.client + client.file} client={client} />
            ))}
          </tbody>
        </table>
      </div>
      {data.clients
        .filter((client) => client.preview)
        .map((client) => (
          <Preview key={client.client + client.file} client={client} />
        ))}
    </>
  );
}

function Row({ client }: { client: Client }) {
  const [look, word] = STATE[client.state];
  return (
    <tr>
      <td className="b">{client.client}</td>
      <td>
        <span className={look}>{word}</span>
      </td>
      <td className="np mid">{client.problem || client.servers.join(", ")}</td>
      <td className="np mono sm dim wrapx">{client.file}</td>
    </tr>
  );
}

function Preview({ client }: { client: Client }) {
  return (
    <section className="card mt16">
      <header>
        <h2>Adopt {client.client}: what would change</h2>
        <code className="dim">{client.file}</code>
      </header>
      <Diff text={client.preview!} />
      <footer className="row">
        <span className="dim sm">A copy is kept; `toolreeve adopt --undo` puts it back.</span>
        <code className="right">{client.command}</code>
        <Copy text={client.command} label="Copy the command" />
      </footer>
    </section>
  );
}
