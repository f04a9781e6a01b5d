/** The audit log as the server answers it. */

import type { Schemas } from "../../api/types";

export type ChainStatus = Schemas["AuditStatus"];
export type VerifyReport = Schemas["VerifyReport"];

export interface AuditRow {
  seq: number;
  kind: string;
  call_id: string;
  timestamp: string | null;
  user?: string;
  tool?: string;
  args?: Record<string, unknown>;
  code?: string;
  hash: string | null;
  prev: string | null;
}

export interface AuditPage {
  records: AuditRow[];
  cursor: string | null;
}
