/** The catalogue as the server answers it. */
import type { DangerLevel } from "../../api/types";

export interface ToolRow {
  name: string;
  title?: string | null;
  description: string;
  danger: DangerLevel;
  category: string;
  read_only: boolean;
  idempotent: boolean;
  server: string | null;
  trusted: boolean;
  tokens: number;
}

export interface Property {
  type?: string | string[];
  description?: string;
  default?: unknown;
  enum?: unknown[];
  anyOf?: Property[];
}

export interface ToolDetail extends ToolRow {
  examples: Record<string, unknown>[];
  input_schema: { properties?: Record<string, Property>; required?: string[] };
}
