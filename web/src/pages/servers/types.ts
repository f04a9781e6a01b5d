/** MCP servers as the server answers them. */

export interface Server {
  name: string;
  transport: string;
  target: string;
  state: string;
  word: string;
  since?: number | string | null;
  tools: number;
  trusted: boolean;
}

export interface Pin {
  tool: string;
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
  diff?: string | null;
  findings: string[];
}

export interface ServerDetail extends Server {
  auth?: string | null;
  sandbox?: string | null;
  file?: string | null;
  problem?: string | null;
  tool_names?: string[];
  pins: Pin[];
}

export const DOT: Record<string, string> = { up: "ok", idle: "ok", away: "bad", changed: "warn", login: "warn" };
