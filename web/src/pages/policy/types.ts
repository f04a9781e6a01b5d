/** The policy as the server answers it. */
import type { Effect } from "../../api/types";

export interface Rule {
  id: string;
  effect: Effect;
  what: string;
  /** In the order of their force. */
  origin: "floor" | "deny" | "rule";
  file: string;
  line: number | null;
  reason: string;
}

export interface RuleList {
  mode: string;
  version: string;
  allowed_tools: string[];
  denied_tools: string[];
  rules: Rule[];
}
