/** The shell: sidebar, header, banners, the page, the bar of the phone, and what opens above it all. */
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { IconDots, IconKeyboard, IconMoon, IconSearch, IconSun } from "@tabler/icons-react";
import type { Status } from "./api/types";
import { useConnection } from "./api/events";
import { useQuery } from "./api/query";
import { useNow } from "./state/clock";
import { useInbox } from "./state/inbox";
import { ago, count } from "./ui/format";
import { typing } from "./ui/keys";
import { isBroken, Nav, RuntimeState } from "./ui/Nav";
import { ON_PHONE, pageAt, PAGES } from "./ui/pages";
import { Loading, Toaster } from "./ui/states";
import type { Overlay } from "./ui/Overlays";
import Inbox from "./pages/inbox/Inbox";
import s from "./ui/Shell.module.css";

const Overlays = lazy(() => import("./ui/Overlays"));
const Calls = lazy(() => import("./pages/calls/Calls"));
const Activity = lazy(() => import("./pages/activity/Activity"));
const Tools = lazy(() => import("./pages/tools/Tools"));
const Runs = lazy(() => import("./pages/runs/Runs"));
const Policy = lazy(() => import("./pages/policy/Policy"));
const Servers = lazy(() => import("./pages/servers/Servers"));
const Audit = lazy(() => import("./pages/audit/Audit"));
const Setup = lazy(() => import("./pages/setup/Setup"));

const waitWords = (waiting: number) =>
  waiting ? `${count(waiting, "question")} ${waiting === 1 ? "waits" : "wait"}` : "nothing waits";

export default function App() {
  const [location, go] = useLocation();
  const { waiting } = useInbox();
  const [overlay, setOverlay] = useState<Overlay>(null);
  const scheme = useComputedColorScheme("light");
  const { setColorScheme } = useMantineColorScheme();
  const page = pageAt(location);
  useEffect(() => {
    document.title = `${waiting.length ? `(${waiting.length}) ` : ""}${page.name} · Toolreeve`;
  }, [waiting.length, page]);
  useGlobalKeys(go, setOverlay);
  const switchTheme = () => setColorScheme(scheme === "dark" ? "light" : "dark");
  return (
    <>
      <a href="#main" className={s.skiplink}>
        Skip to content
      </a>
      <div className={s.app}>
        <nav className={s.side} aria-label="Pages">
          <Brand />
          <Nav location={location} />
          <RuntimeState />
        </nav>
        <main className={s.main} id="main" tabIndex={-1}>
          <div className={s.head}>
            <h1>{page.name}</h1>
            <span className={`${s.sub} num no-phone`}>{page.path === "/inbox" && waitWords(waiting.length)}</span>
            <span className="right" />
            <button className={s.find} onClick={() => setOverlay("palette")}>
              <IconSearch aria-hidden />
              <span>Search or jump to…</span>
              <kbd className="right" aria-hidden>
                ⌘K
              </kbd>
            </button>
            <button className="icon no-phone" aria-label="Keyboard shortcuts" onClick={() => setOverlay("keys")}>
              <IconKeyboard />
            </button>
            <button
              className="icon"
              aria-label={scheme === "dark" ? "Use the light theme" : "Use the dark theme"}
              onClick={switchTheme}
            >
              {scheme === "dark" ? <IconSun /> : <IconMoon />}
            </button>
          </div>
          <Banners />
          <div className="body">
            <Suspense fallback={<Loading />}>
              <Switch>
                <Route path="/inbox/:id?" component={Inbox} />
                <Route path="/calls/:id?" component={Calls} />
                <Route path="/activity" component={Activity} />
                <Route path="/tools/:name?" component={Tools} />
                <Route path="/runs/:id?" component={Runs} />
                <Route path="/policy/:tab?" component={Policy} />
                <Route path="/servers/:name?" component={Servers} />
                <Route path="/audit" component={Audit} />
                <Route path="/setup/:tab?" component={Setup} />
                <Route>
                  <Redirect to="/inbox" replace />
                </Route>
              </Switch>
            </Suspense>
          </div>
        </main>
        <nav className={s.tabbar} aria-label="Pages, short">
          {PAGES.slice(0, ON_PHONE).map((each) => (
            <Link key={each.path} href={each.path} aria-current={page === each ? "page" : undefined}>
              <each.icon aria-hidden />
              {each.name}
              {each.path === "/inbox" && waiting.length > 0 && (
                <span className={s.n}>
                  {waiting.length}
                  <span className="sr"> waiting</span>
                </span>
              )}
            </Link>
          ))}
          <button onClick={() => setOverlay("more")}>
            <IconDots aria-hidden />
            More
          </button>
        </nav>
      </div>
      {overlay && (
        <Suspense fallback={null}>
          <Overlays overlay={overlay} close={() => setOverlay(null)} switchTheme={switchTheme} location={location} />
        </Suspense>
      )}
      <div className="sr" role="status" aria-live="polite">
        {waitWords(waiting.length)} for you
      </div>
      <Toaster />
    </>
  );
}

function Brand() {
  const { data } = useQuery<Status>("/status");
  return (
    <div className={s.brand}>
      <svg viewBox="0 0 16 16" aria-hidden>
        <rect width="16" height="16" rx="3.5" fill="var(--ac-solid)" />
        <path d="M4 4.2h8M8 4.2V12" stroke="#fff" strokeWidth="2" strokeLinecap="round" />
      </svg>
      <span>Toolreeve</span>
      <span className="dim sm right cut" title={data?.workspace}>
        {data?.workspace.split("/").at(-1)}
      </span>
    </div>
  );
}

function Banners() {
  const { live, lostAt } = useConnection();
  const { loadedAt } = useInbox();
  const { data } = useQuery<Status>("/status");
  const now = useNow();
  return (
    <>
      {!live && lostAt > 0 && (
        <div className={`${s.banner} ${s.warn}`} role="status">
          The connection to the runtime was lost {ago(now - lostAt)}. What you see is from{" "}
          {new Date(loadedAt).toTimeString().slice(0, 8)}; answering is off until it is back.
        </div>
      )}
      {isBroken(data) && (
        <div className={`${s.banner} ${s.bad}`} role="alert">
          <b>The audit chain is broken.</b> A record was edited, deleted or reordered after it was written.{" "}
          <Link href="/audit" className="link">
            Look at it
          </Link>
        </div>
      )}
    </>
  );
}

const CHORD_MS = 900;

function useGlobalKeys(go: (path: string) => void, setOverlay: (overlay: Overlay) => void): void {
  const pressedG = useRef(0);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key === "k") {
        event.preventDefault();
        setOverlay("palette");
        return;
      }
      if (typing(event)) return;
      if (event.key === "g") pressedG.current = Date.now();
      else if (event.key === "?") setOverlay("keys");
      else if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLElement>("[data-filter]")?.focus();
      } else if (Date.now() - pressedG.current < CHORD_MS) {
        pressedG.current = 0;
        const page = PAGES.find((each) => each.key === event.key.toUpperCase());
        if (!page) return;
        event.stopImmediatePropagation();
        go(page.path);
      }
    };
    addEventListener("keydown", press, true);
    return () => removeEventListener("keydown", press, true);
  }, [go, setOverlay]);
}
