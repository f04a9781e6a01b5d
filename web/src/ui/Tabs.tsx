/** The tabs of a page, each with its own URL. */
import { Link } from "wouter";

export interface TabEntry {
  path: string;
  label: string;
  count?: number | string;
}

export function Tabs({ label, tabs, current }: { label: string; tabs: TabEntry[]; current: string }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.path} href={tab.path} aria-current={tab.path === current ? "page" : undefined}>
          {tab.label}
          {tab.count !== undefined && <span className="n">{tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}
