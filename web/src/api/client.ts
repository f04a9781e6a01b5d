/** Requests to the runtime: JSON, the session's CSRF token, errors as `application/problem+json`. */

export const API = "/api/v1";

export class Problem extends Error {
  constructor(
    readonly request: string,
    readonly status: number,
    readonly body: Record<string, unknown>,
  ) {
    super(String(body.detail ?? body.title ?? "no answer"));
  }

  get code(): string {
    return typeof this.body.code === "string" ? this.body.code : "";
  }

  /** What a person reads: the request, its status, what the server said. */
  get line(): string {
    if (this.status === 0) return `${this.request} got no answer.`;
    return `${this.request} answered ${this.status}: ${this.message}${this.code ? ` (${this.code})` : ""}`;
  }
}

export interface Session {
  csrf: string;
}

let session: Promise<Session> | undefined;

/** The CSRF token of this browser's session; asked for once, and again after a refusal. */
function csrf(): Promise<string> {
  session ??= request<Session>("GET", "/session");
  return session.then((found) => found.csrf ?? "");
}

async function parse(response: Response): Promise<unknown> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.includes("json")) return { detail: (await response.text()).slice(0, 400) };
  return response.json();
}

export async function request<T>(method: string, path: string, body?: unknown, extra?: HeadersInit): Promise<T> {
  const name = `${method} ${API}${path.split("?")[0]}`;
  const headers = new Headers({ Accept: "application/json", ...extra });
  if (method !== "GET") {
    headers.set("Content-Type", "application/json");
    headers.set("X-CSRF-Token", await csrf());
  }
  let response: Response;
  try {
    response = await fetch(API + path, {
      method,
      headers,
      body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
    });
  } catch {
    throw new Problem(name, 0, {});
  }
  const answer = await parse(response);
  if (response.status === 401 || response.status === 403) session = undefined;
  if (!response.ok) throw new Problem(name, response.status, (answer ?? {}) as Record<string, unknown>);
  return answer as T;
}

export const get = <T>(path: string) => request<T>("GET", path);
export const put = <T>(path: string, body: unknown) => request<T>("PUT", path, body);
export const post = <T>(path: string, body?: unknown) => request<T>("POST", path, body);
