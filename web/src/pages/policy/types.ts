/** The policy as the server answers it. */
import type { Effect } from "../../api/types";

export interface Rule {
  id: string;
  effect: Effect;
  what: string;
  origin: string;
  file: string | null;
  line: number | null;
  yaml: string;
  reason: string | null;
  hits_7d: number;
  last: number | string | null;
  warning: string | null;
}

export interface RuleList {
  mode: string;
  version: string;
  rules: Rule[];
}
