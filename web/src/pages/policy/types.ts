/** The policy as the server answers it. */
import type { Effect, Schemas } from "../../api/types";

export type Rule = Schemas["RuleRow"];
export type RuleList = Schemas["PolicyReport"];
export type PolicyFile = Schemas["PolicyFileText"];
export type HitList = Schemas["HitList"];
export type Check = Schemas["PolicyCheck"];
export type PolicyProblem = Schemas["PolicyProblem"];
export type SuggestionList = Schemas["SuggestionList"];

export interface ChangedCall {
  call_id: string;
  tool: string;
  args: Record<string, unknown> | null;
  from: Effect;
  to: Effect;
  rule: string | null;
}

export type Simulation = Omit<Schemas["SimulationReport"], "by" | "calls"> & {
  by: { from: Effect; to: Effect; n: number }[];
  calls: ChangedCall[];
};
