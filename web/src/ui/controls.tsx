/** Small controls: a row of choices, a copy button, a menu, a search field. */
import { lazy, Suspense, useState, type KeyboardEvent, type ReactNode } from "react";
import { IconCheck, IconCopy, IconSearch } from "@tabler/icons-react";
import type { MenuItem } from "./DropMenu";

const DropMenu = lazy(() => import("./DropMenu"));

export interface Option<T extends string> {
  value: T;
  label: string;
  withheld?: string;
}

interface ChoiceProps<T extends string> {
  value: T;
  choose: (value: T) => void;
  options: Option<T>[];
  label: string;
}

/** A radio group; a withheld option is struck through, its reason in the title. */
export function Choices<T extends string>({ value, choose, options, label }: ChoiceProps<T>) {
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const open = options.filter((each) => !each.withheld);
    const at = open.findIndex((each) => each.value === value);
    const next = open[(at + step + open.length) % open.length];
    choose(next.value);
    event.currentTarget.querySelector<HTMLElement>(`[data-value="${next.value}"]`)?.focus();
  };
  return (
    <div className="seg" role="radiogroup" aria-label={label} onKeyDown={move}>
      {options.map((each) => (
        <button
          key={each.value}
          data-value={each.value}
          role="radio"
          aria-checked={each.value === value}
          tabIndex={each.value === value ? 0 : -1}
          disabled={!!each.withheld}
          title={each.withheld}
          onClick={() => choose(each.value)}
        >
          {each.label}
        </button>
      ))}
    </div>
  );
}

export async function copyText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}

const COPIED_MS = 1_200;

export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <button className="icon" aria-label={copied ? "Copied" : label} title={label} onClick={() => void copy()}>
      {copied ? <IconCheck /> : <IconCopy />}
    </button>
  );
}

/** The menu itself is loaded when it is first opened. */
export function Menu({ label, icon, items }: { label: string; icon?: ReactNode; items: MenuItem[] }) {
  const [wanted, setWanted] = useState(false);
  const plain = (
    <button className="bt sm" onClick={() => setWanted(true)}>
      {icon}
      {label}
    </button>
  );
  if (!wanted) return plain;
  return (
    <Suspense fallback={plain}>
      <DropMenu label={label} icon={icon} items={items} />
    </Suspense>
  );
}

interface SearchProps {
  label: string;
  placeholder: string;
  value: string;
  change: (value: string) => void;
}

/** The filter of a page; `/` moves the focus here. */
export function Search({ label, placeholder, value, change }: SearchProps) {
  return (
    <div className="row grow find-in">
      <IconSearch size={14} className="dim" aria-hidden />
      <input
        data-filter
        className="in quiet"
        aria-label={label}
        placeholder={placeholder}
        value={value}
        onChange={(event) => change(event.target.value)}
      />
    </div>
  );
}
