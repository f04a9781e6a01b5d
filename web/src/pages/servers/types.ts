/** MCP servers as the server answers them. */

import type { Schemas } from "../../api/types";

export type Server = Schemas["ServerRow"];
export type Pin = Schemas["PinRow"];
export type ServerDetail = Schemas["ServerDetail"];

const DOTS: Record<string, string> = { up: "ok", off: "", connecting: "warn", away: "bad", failed: "bad" };

const WORDS: Record<string, string> = { ok: "dim", bad: "red b" };

/** The look of the words beside a server's dot. */
export const wordLook = (server: Server) => WORDS[dotOf(server)] ?? "amber b";

/** The look of a server's state. */
export const dotOf = (server: Server) => (server.changed.length ? "warn" : (DOTS[server.state] ?? "warn"));
