/** Metrics over time as the server answers them. */
import type { Schemas } from "../../api/types";

export type MetricSeries = Schemas["CallSeries"];
export type Group = Schemas["CallGroup"];
