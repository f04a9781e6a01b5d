/** What a page shows instead of its content: empty, failed, loading; and the toast. */
import { useEffect, useState, type ReactNode } from "react";
import { IconInbox, IconPlugConnectedX } from "@tabler/icons-react";
import type { Problem } from "../api/client";
import s from "./Overlays.module.css";

export function Empty({ icon, title, children }: { icon?: ReactNode; title: string; children?: ReactNode }) {
  return (
    <div className="state">
      {icon ?? <IconInbox aria-hidden />}
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failed({ what, problem, retry }: { what: string; problem: Problem; retry: () => void }) {
  if (problem.status === 401 || problem.status === 403) return <NotAllowed what={what} problem={problem} />;
  if (problem.status === 404)
    return (
      <Empty title={`${what}: not found`}>
        <p>{problem.line}</p>
        <p className="dim">It does not exist, or your role may not see it.</p>
      </Empty>
    );
  return (
    <div className="state" role="alert">
      <IconPlugConnectedX aria-hidden />
      <h2>{what} could not be loaded</h2>
      <p>{problem.line}</p>
      <p className="dim">
        Your agents are not affected: questions wait in the runtime, and <code>toolreeve approvals</code> answers them
        in a terminal.
      </p>
      <button className="bt mt8" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** Where a login with the OpenID provider begins, if there is one. */
const oidcLogin = document.querySelector<HTMLMetaElement>('meta[name="oidc-login"]')?.content;

function NotAllowed({ what, problem }: { what: string; problem: Problem }) {
  return (
    <div className="state" role="alert">
      <IconPlugConnectedX aria-hidden />
      <h2>{problem.status === 401 ? "You are not logged in" : `${what} is not open to your role`}</h2>
      <p>{problem.line}</p>
      {oidcLogin?.startsWith("/") && (
        <a className="bt prim mt8" href={oidcLogin}>
          Log in with your account
        </a>
      )}
      {problem.status === 401 && (
        <>
          <p className="dim mt8">Open the link that the server printed when it started, or ask it for a new one:</p>
          <pre className="pre">toolreeve tokens link</pre>
        </>
      )}
    </div>
  );
}

export function Loading({ rows = 8 }: { rows?: number }) {
  return (
    <div className="pad col" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className={`skel w${row % 4}`} />
      ))}
    </div>
  );
}

interface Message {
  text: string;
  action?: string;
  go?: () => void;
}

let show: (message: Message) => void = () => {};

export const toast = (text: string, action?: string, go?: () => void) => show({ text, action, go });

const TOAST_MS = 6_000;

export function Toaster() {
  const [message, setMessage] = useState<Message | null>(null);
  useEffect(() => {
    show = setMessage;
  }, []);
  useEffect(() => {
    if (!message) return;
    const timer = setTimeout(() => setMessage(null), TOAST_MS);
    return () => clearTimeout(timer);
  }, [message]);
  const act = () => {
    message?.go?.();
    setMessage(null);
  };
  return (
    <div role="status" aria-live="polite">
      {message && (
        <div className={s.toast}>
          <span>{message.text}</span>
          {message.action && <button onClick={act}>{message.action}</button>}
        </div>
      )}
    </div>
  );
}
