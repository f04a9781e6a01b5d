/** The audit log as the server answers it. */

export interface ChainStatus {
  records: number;
  head: string;
  /** What the last verification found; null before the first. */
  state: string | null;
  verified_at: number | null;
  broken_at: number | null;
  parts: ("ok" | "broken" | "unknown")[];
}

export interface VerifyReport {
  ok: boolean;
  records: number;
  problems: { seq?: number; problem?: string; message?: string }[];
}

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
