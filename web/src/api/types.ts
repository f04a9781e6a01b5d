/** What the endpoints answer: the generated types of the API, and those of the cards that it describes as plain objects. */
import type { components } from "./schema";

export type Schemas = components["schemas"];

export type DangerLevel = "safe" | "low" | "medium" | "high" | "critical";
export type Effect = "allow" | "ask" | "deny";
export type Scope = "once" | "session" | "always";
export type Outcome = "running" | "done" | "failed" | "refused" | "waiting" | "lost";

export interface Target {
  kind: string;
  target: string;
  reach: "exact" | "below" | string;
}

export interface Part {
  argv: string[];
  known: boolean;
  why?: string | null;
  joined?: string | null;
  effects: Target[];
}

/** `diff` is a unified diff; null where there is none to show. */
export interface FileChange {
  path: string;
  kind: string;
  add: number | null;
  del: number | null;
  diff: string | null;
}

/** Why a value of a call needs a person, and where it stands. */
export interface Provenance {
  parameter: string;
  value: string;
  kind: string;
  why: string;
  /** The tool whose result holds the value; empty if it stands nowhere. */
  source: string;
  label: string;
  call_id: string;
  at: number | null;
  /** The foreign text around it. */
  excerpt: string;
  /** A value that the user did name and that this one resembles. */
  lookalike: string;
}

/** What a yes may cover: the rule that says so, or why it is withheld. */
export interface Grant {
  scope: Scope;
  rule?: string | null;
  text?: string;
  choice?: number;
  withheld?: string;
}

export interface Trial {
  exit?: number | null;
  ms?: number;
  output?: string;
  dropped?: string[] | string;
  network?: boolean | string;
  preview?: string;
}

/** What the list shows of a question. */
export interface Question {
  id: string;
  tool: string;
  state: "pending" | "allowed" | "denied" | "expired" | "withdrawn" | string;
  asked: number;
  expires: number;
  kind: "write" | "command" | "trial" | "send" | "batch" | "plain";
  sentence: string;
  short: string;
  danger: DangerLevel;
  client: string;
  workspace: string;
  session: string;
  user: string;
  why: string;
  layer: string;
  rule: string | null;
  answered_by: string | null;
}

/** The card of a question: everything a person needs to answer it. */
export interface Card extends Question {
  call_id: string;
  args: Record<string, unknown> | null;
  defaults: string[];
  effects: Target[];
  parts: Part[];
  files: FileChange[];
  trial: Trial | null;
  provenance: Provenance[];
  knowable: string[];
  grants: Grant[];
  digest: string;
  channels: string[];
  sandbox: string | null;
  approvals: number;
  votes: string[];
  answered_at: number | null;
  answer: { answer: "allow" | "deny"; scope: Scope; note: string; channel: string } | null;
}

export type Stage = Schemas["CallStage"];
export type CallRow = Omit<Schemas["CallRow"], "danger" | "decision"> & {
  danger: DangerLevel | null;
  decision: Decision | null;
};
export type CallPage = Omit<Schemas["CallPage"], "calls"> & { calls: CallRow[] };
export type CallDetail = Omit<Schemas["CallDetail"], "danger" | "decision"> & CallRow;
export type Decision = Omit<Schemas["CallDecision"], "effect"> & { effect: Effect };
export type Status = Schemas["StatusReport"];
