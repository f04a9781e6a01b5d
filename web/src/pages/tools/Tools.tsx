/** Tools: the catalogue by origin, and one tool with its form. */
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import type { ToolRow } from "./types";
import { useQuery } from "../../api/query";
import { usePhone } from "../../state/phone";
import { Search } from "../../ui/controls";
import { int } from "../../ui/format";
import { Danger } from "../../ui/signs";
import { Empty, Failed, Loading } from "../../ui/states";
import { ToolPane } from "./ToolPane";

function group(tools: ToolRow[], text: string): [string, ToolRow[]][] {
  const search = text.trim().toLowerCase();
  const groups = new Map<string, ToolRow[]>();
  for (const tool of tools) {
    if (search && !`${tool.name} ${tool.description} ${tool.danger}`.toLowerCase().includes(search)) continue;
    const name = tool.server ? `${tool.server} (MCP server)` : tool.category;
    groups.set(name, [...(groups.get(name) ?? []), tool]);
  }
  return [...groups];
}

export default function Tools({ params }: { params: { name?: string } }) {
  const { data, error, reload } = useQuery<{ tools: ToolRow[] }>("/tools");
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const phone = usePhone();
  const tools = useMemo(() => data?.tools ?? [], [data]);
  const groups = useMemo(() => group(tools, text), [tools, text]);
  if (!data && error) return <Failed what="The catalogue" problem={error} retry={reload} />;
  if (!data) return <Loading rows={14} />;
  if (!tools.length)
    return (
      <Empty title="No tools">
        <p>Your configuration shows none to you.</p>
        <pre className="pre">toolreeve tools --all</pre>
      </Empty>
    );
  const wanted = params.name && decodeURIComponent(params.name);
  const current = tools.find((tool) => tool.name === wanted) ?? (phone || wanted ? undefined : groups[0]?.[1][0]);
  return (
    <div className={`split two ${current || wanted ? "open" : ""}`}>
      <div className="list">
        <div className="filters">
          <Search label="Filter tools" placeholder="Name, purpose, danger…" value={text} change={setText} />
        </div>
        {groups.map(([name, members]) => (
          <section key={name}>
            <h2 className="group">
              {name}
              <span className="num dim">{int(members.reduce((sum, tool) => sum + tool.tokens, 0))} tokens</span>
            </h2>
            <ul>
              {members.map((tool) => (
                <li key={tool.name}>
                  <Link
                    href={`/tools/${encodeURIComponent(tool.name)}`}
                    className="item"
                    aria-current={tool === current ? "true" : undefined}
                  >
                    <div className="row">
                      <span className="b cut">{tool.name}</span>
                      <span className="right">
                        <Danger level={tool.danger} />
                      </span>
                    </div>
                    <div className="dim sm cut">{tool.description}</div>
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {!groups.length && (
          <Empty title={`No tool for “${text}”`}>
            <button className="bt" onClick={() => setText("")}>
              Clear
            </button>
          </Empty>
        )}
      </div>
      <div className="pane">
        {(current || wanted) && (
          <ToolPane key={current?.name ?? wanted} name={current?.name ?? wanted!} back={() => go("/tools")} />
        )}
      </div>
    </div>
  );
}
