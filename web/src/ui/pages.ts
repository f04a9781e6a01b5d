/** The pages: their paths, names, icons and keys. */
import type { ComponentType } from "react";
import {
  IconChartHistogram,
  IconInbox,
  IconLink,
  IconRobot,
  IconScale,
  IconServer2,
  IconSettings,
  IconTimeline,
  IconTool,
} from "@tabler/icons-react";

export interface PageEntry {
  path: string;
  name: string;
  icon: ComponentType<{ "aria-hidden"?: boolean }>;
  /** Pressed after G. */
  key: string;
}

export const PAGES: PageEntry[] = [
  { path: "/inbox", name: "Inbox", icon: IconInbox, key: "I" },
  { path: "/calls", name: "Calls", icon: IconTimeline, key: "C" },
  { path: "/activity", name: "Activity", icon: IconChartHistogram, key: "Y" },
  { path: "/tools", name: "Tools", icon: IconTool, key: "T" },
  { path: "/runs", name: "Runs", icon: IconRobot, key: "R" },
  { path: "/policy", name: "Policy", icon: IconScale, key: "P" },
  { path: "/servers", name: "Servers", icon: IconServer2, key: "S" },
  { path: "/audit", name: "Audit", icon: IconLink, key: "A" },
  { path: "/setup", name: "Setup", icon: IconSettings, key: "U" },
];

export const ON_PHONE = 4;

export const pageAt = (path: string) => PAGES.find((page) => path.startsWith(page.path)) ?? PAGES[0];
