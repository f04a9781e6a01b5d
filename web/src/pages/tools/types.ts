/** The catalogue as the server answers it. */
import type { DangerLevel, Schemas } from "../../api/types";

export type ToolRow = Omit<Schemas["ToolRow"], "danger"> & { danger: DangerLevel };

export interface Property {
  type?: string | string[];
  description?: string;
  default?: unknown;
  enum?: unknown[];
  anyOf?: Property[];
}

export type ToolDetail = Omit<Schemas["ToolDetail"], "danger" | "input_schema" | "examples"> &
  ToolRow & {
    examples: Record<string, unknown>[];
    input_schema: { properties?: Record<string, Property>; required?: string[] };
  };
