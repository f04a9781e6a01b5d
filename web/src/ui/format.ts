/** Numbers and times as text, always with their unit. */

export function ms(value: number): string {
  if (value < 0.1) return `${Math.round(value * 1000)} µs`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1000)} s`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1_048_576) return `${(value / 1024).toFixed(1)} KB`;
  return `${(value / 1_048_576).toFixed(1)} MB`;
}

export const int = (value: number) => value.toLocaleString("en-GB");

export const count = (value: number, one: string, many = `${one}s`) => `${int(value)} ${value === 1 ? one : many}`;

const CLOCK_SKEW_MS = 60_000;

/** How long ago, or how long until a time to come; the clocks of server and browser may differ a little. */
export function ago(elapsed: number): string {
  if (elapsed < -CLOCK_SKEW_MS) return `in ${span(-elapsed)}`;
  return elapsed < 4500 ? "now" : `${span(elapsed)} ago`;
}

function span(elapsed: number): string {
  const seconds = Math.round(elapsed / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Times of the API are seconds since the epoch, or ISO 8601. */
export function millis(value: number | string | null | undefined): number {
  if (value === null || value === undefined) return 0;
  return typeof value === "number" ? value * 1000 : Date.parse(value);
}

export const plainJson = (value: unknown) =>
  typeof value === "string" ? value : JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");

const LONGEST_PLACE = 28;
const HOME = /^(\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/;

/** A directory as a person knows it: below a home, or its own name where the whole path is too long. */
export function placeName(path: string): string {
  const short = path.replace(HOME, "~");
  return short.length > LONGEST_PLACE ? `…/${short.split("/").at(-1)}` : short;
}

/** The lines of a text; a last line without a break counts as well. */
export const lineCount = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

/** A path as the agent would write it, below its workspace. */
export const relativePath = (path: string, workspace: string) =>
  workspace && path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;

/** A rule as a policy file writes it: one key a line, nothing left out. */
export function ruleText(rule: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(rule);
  } catch {
    return rule;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return rule;
  const lines = Object.entries(parsed).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `- ${lines.join("\n  ")}`;
}
