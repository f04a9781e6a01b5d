/** Clients of this machine: adopted or not, hooked or not, with the change that would be made. */
import { useState } from "react";
import { post, Problem } from "../../api/client";
import { invalidate, useQuery } from "../../api/query";
import type { Schemas } from "../../api/types";
import { Copy } from "../../ui/controls";
import { Diff } from "../../ui/Diff";
import { Empty, Failed, Loading, toast } from "../../ui/states";

interface Client {
  id: string;
  client: string;
  state: "found" | "settled";
  file: string;
  servers: string[];
  problem: string;
  preview: string | null;
  version: string;
  command: string;
}

type Hook = Schemas["HookRow"];

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
      <>
        <Empty title="No client found">
          <p>
            Toolreeve looks for the settings of Claude Code, Codex, Cursor, Gemini CLI, Zed, VS Code and others. Install
            one, or connect any MCP client by hand:
          </p>
          <pre className="pre">{'{"command": "toolreeve", "args": ["mcp"]}'}</pre>
        </Empty>
        <Hooks />
      </>
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
          <Preview
            key={client.client + client.file}
            title={`Adopt ${client.client}: what would change`}
            action="Adopt"
            url={`/clients/${client.id}/adopt`}
            done="It asks about every call of an adopted server until you trust it."
            change={client}
          />
        ))}
      <Hooks />
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

interface PreviewProps {
  title: string;
  action: string;
  url: string;
  done: string;
  change: { file: string; preview: string | null; version: string; command: string };
}

/** What is shown is what is done: the server refuses if it would be something else by now. */
function Preview({ title, action, url, done, change }: PreviewProps) {
  const [running, setRunning] = useState(false);
  const apply = async () => {
    setRunning(true);
    try {
      const made = await post<Schemas["ClientChanged"]>(url, { version: change.version });
      toast(`Changed: ${made.files.join(", ")}. ${done}`);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    setRunning(false);
    invalidate("/clients", "/hooks");
  };
  return (
    <section className="card mt16">
      <header>
        <h2>{title}</h2>
        <code className="dim wrapx">{change.file}</code>
      </header>
      <Diff text={change.preview!} />
      <footer className="row wrap">
        <span className="dim sm">
          A copy is kept. In a terminal: <code>{change.command}</code>
        </span>
        <Copy text={change.command} label="Copy the command" />
        <button className="bt sm right" disabled={running} onClick={() => void apply()}>
          {action}
        </button>
      </footer>
    </section>
  );
}

const HOOK: Record<Hook["state"], string> = {
  installed: "tag ok",
  "in part": "tag warn",
  absent: "tag",
  unreadable: "tag bad",
};

function Hooks() {
  const { data, error, reload } = useQuery<{ hooks: Hook[] }>("/hooks");
  const [open, setOpen] = useState("");
  if (!data && error) return <Failed what="The hooks" problem={error} retry={reload} />;
  if (!data?.hooks.length) return null;
  const shown = data.hooks.find((hook) => hook.client === open && hook.preview);
  return (
    <>
      <h2 className="lgx mt16">Hooks</h2>
      <p className="mid prose mt8">
        With a hook, the policy also decides about a client’s own tools, such as its shell.
      </p>
      <div className="card mt16 scrollx">
        <table className="tbl">
          <thead>
            <tr>
              <th>Client</th>
              <th>Hook</th>
              <th className="np">Settings</th>
              <th>
                <span className="sr">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.hooks.map((hook) => (
              <tr key={hook.client}>
                <td className="b">{hook.title}</td>
                <td>
                  <span className={HOOK[hook.state]}>{hook.state}</span>
                </td>
                <td className="np mono sm dim wrapx">{hook.file}</td>
                <td className="r">
                  {hook.preview && (
                    <button className="bt sm" onClick={() => setOpen(hook.client)}>
                      Show the change…
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown && (
        <Preview
          title={`Install the hook in ${shown.title}: what would change`}
          action="Install"
          url={`/hooks/${shown.client}/install`}
          done="Start the client again."
          change={shown}
        />
      )}
    </>
  );
}
