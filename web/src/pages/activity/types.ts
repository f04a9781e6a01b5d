/** Metrics over time as the server answers them. */

export interface MetricSeries {
  t: number[];
  calls: number[];
  failed: number[];
  refused: number[];
  prompts: number[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
  total_p95: number | null;
  prompts_per_100: (number | null)[];
  spent: number;
  limit: number | null;
  errors: Record<string, number>;
  whole: boolean;
}

export interface Group {
  key: string;
  calls: number;
  p50: number | null;
  p95: number | null;
  err: number;
  prompts: number;
}
