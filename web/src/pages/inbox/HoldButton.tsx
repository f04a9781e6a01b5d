/** Press and hold: for critical calls a click, a tap or a key press decides nothing. */
import { useEffect, useRef, useState } from "react";
import s from "./Inbox.module.css";

export const HOLD_MS = 1_200;

export function HoldButton({
  disabled,
  label,
  done,
}: {
  disabled: boolean;
  label: string;
  done: (heldMs: number) => void;
}) {
  const [holding, setHolding] = useState(false);
  const timer = useRef(0);
  const release = () => {
    clearTimeout(timer.current);
    timer.current = 0;
    setHolding(false);
  };
  const press = () => {
    if (disabled || timer.current) return;
    setHolding(true);
    const since = performance.now();
    timer.current = window.setTimeout(() => {
      release();
      done(Math.round(performance.now() - since));
    }, HOLD_MS);
  };
  const latest = useRef({ press, release });
  latest.current = { press, release };
  useHeldKey(latest);
  useEffect(() => {
    if (disabled) latest.current.release();
  }, [disabled]);
  return (
    <button
      className={`bt crit ${s.allow} ${holding ? "holding" : ""}`}
      disabled={disabled}
      onPointerDown={(event) => event.button === 0 && press()}
      onPointerUp={release}
      onPointerLeave={release}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        if (!event.repeat) press();
      }}
      onKeyUp={release}
      onBlur={release}
      aria-describedby="hold-hint"
    >
      <i className="fill" aria-hidden />
      <span>{holding ? "Keep holding…" : label}</span>
      <kbd>hold A</kbd>
    </button>
  );
}

/** The key A, held anywhere outside a field. */
function useHeldKey(latest: { current: { press: () => void; release: () => void } }): void {
  useEffect(() => {
    const outside = (event: KeyboardEvent) =>
      event.key.toLowerCase() === "a" && !(event.target as Element).closest("input, textarea, [role=dialog]");
    const down = (event: KeyboardEvent) => {
      if (outside(event) && !event.repeat && !event.metaKey && !event.ctrlKey && !event.altKey) latest.current.press();
    };
    const up = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "a") latest.current.release();
    };
    const blur = () => latest.current.release();
    addEventListener("keydown", down);
    addEventListener("keyup", up);
    addEventListener("blur", blur);
    return () => {
      removeEventListener("keydown", down);
      removeEventListener("keyup", up);
      removeEventListener("blur", blur);
    };
  }, [latest]);
}
