/** The sidebar's links, and the state of the runtime at its foot. */
import { Link } from "wouter";
import type { Status } from "../api/types";
import { useConnection } from "../api/events";
import { useQuery } from "../api/query";
import { useInbox } from "../state/inbox";
import { int } from "./format";
import { pageAt, PAGES } from "./pages";
import s from "./Shell.module.css";

const GROUP_AT = 3;

export const isBroken = (status: Status | undefined) => status?.chain?.startsWith("broken") ?? false;

export function Nav({ location, from = 0 }: { location: string; from?: number }) {
  const { waiting } = useInbox();
  const servers = useQuery<{ servers: { state: string }[] }>("/servers").data?.servers ?? [];
  const away = servers.filter((each) => each.state === "away" || each.state === "failed").length;
  const current = pageAt(location);
  return (
    <ul className={s.nav}>
      {PAGES.slice(from).map((page, index) => (
        <li key={page.path}>
          {index + from === GROUP_AT && <div className={s.sep} />}
          <Link href={page.path} aria-current={page === current ? "page" : undefined}>
            <page.icon aria-hidden />
            {page.name}
            {page.path === "/inbox" && waiting.length > 0 && (
              <span className={`${s.n} ${s.hot}`}>{waiting.length}</span>
            )}
            {page.path === "/servers" && away > 0 && <span className={`${s.n} ${s.bad}`}>{away} away</span>}
          </Link>
        </li>
      ))}
    </ul>
  );
}

export function RuntimeState() {
  const { live, lostAt } = useConnection();
  const { data } = useQuery<Status>("/status");
  const broken = isBroken(data);
  return (
    <dl className={s.status}>
      <dt>Events</dt>
      <dd>
        <span className={`dot ${live ? "ok" : lostAt ? "bad" : ""}`} />
        {live ? "live" : lostAt ? "lost" : "connecting"}
      </dd>
      <dt>Chain</dt>
      <dd>
        <span className={`dot ${broken ? "bad" : "ok"}`} />
        <Link href="/audit" className="num">
          {broken ? "broken" : `#${int(data?.head ?? 0)}`}
        </Link>
      </dd>
      <dt>Mode</dt>
      <dd>
        <Link href="/policy">{data?.mode ?? "…"}</Link>
      </dd>
      <dt>Sandbox</dt>
      <dd>
        <Link href="/setup">{data?.sandbox ?? "…"}</Link>
      </dd>
    </dl>
  );
}
