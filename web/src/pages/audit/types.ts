/** The audit log as the server answers it. */

export interface ChainStatus {
  records: number;
  head: string;
  verified_at: number | string | null;
  broken_at?: number | null;
  problem?: string;
}

export interface AuditRow {
  seq: number;
  kind: string;
  at: string | null;
  call_id: string | null;
  user: string;
  tool: string;
  main: string;
  code: string;
  hash: string | null;
  prev: string | null;
}

export interface AuditPage {
  records: AuditRow[];
  cursor: string | null;
}
