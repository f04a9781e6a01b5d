/** MCP servers as the server answers them. */

export interface Server {
  name: string;
  transport: string;
  target: string;
  file: string;
  state: string;
  word: string;
  trust: boolean;
  tools: number;
  changed: string[];
  problem: string;
  problems: string[];
}

export interface Pin {
  tool: string;
  difference: string;
  digest: string;
}

export interface ServerDetail extends Server {
  pins: Pin[];
  log: string[];
}

const DOTS: Record<string, string> = { up: "ok", off: "", connecting: "warn", away: "bad", failed: "bad" };

/** The look of a server's state. */
export const dotOf = (server: Server) => (server.changed.length ? "warn" : (DOTS[server.state] ?? "warn"));
