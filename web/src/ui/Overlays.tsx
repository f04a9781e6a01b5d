/** What opens above a page: the palette, the key list, the rest of the pages on a phone. Not in the first load. */
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { Drawer, Modal } from "@mantine/core";
import "@mantine/core/styles/ModalBase.css";
import "@mantine/core/styles/Modal.css";
import "@mantine/core/styles/Drawer.css";
import { IconInbox, IconLink, IconScale, IconSun, IconTimeline, IconTool } from "@tabler/icons-react";
import type { CallPage } from "../api/types";
import { useQuery } from "../api/query";
import { useInbox } from "../state/inbox";
import { Nav, RuntimeState } from "./Nav";
import { ON_PHONE, PAGES, type PageEntry } from "./pages";
import { SKIN } from "./skin";
import s from "./Overlays.module.css";

export type Overlay = "palette" | "keys" | "more" | null;

interface Props {
  overlay: Overlay;
  close: () => void;
  switchTheme: () => void;
  location: string;
}

export default function Overlays({ overlay, close, switchTheme, location }: Props) {
  return (
    <>
      <Drawer
        opened={overlay === "more"}
        onClose={close}
        position="bottom"
        size="auto"
        title="More"
        lockScroll={false}
        classNames={SKIN}
        closeButtonProps={{ "aria-label": "Close" }}
        transitionProps={{ duration: 0 }}
      >
        <div onClickCapture={() => setTimeout(close)}>
          <Nav location={location} from={ON_PHONE} />
        </div>
        <RuntimeState />
      </Drawer>
      {overlay === "palette" && <Palette close={close} switchTheme={switchTheme} />}
      <Keys open={overlay === "keys"} close={close} />
    </>
  );
}

interface Entry {
  label: string;
  hint: string;
  icon: PageEntry["icon"];
  go: () => void;
}

const SHOWN = 14;

function useEntries(text: string, switchTheme: () => void): Entry[] {
  const [, go] = useLocation();
  const { waiting } = useInbox();
  const tools = useQuery<{ tools: { name: string }[] }>("/tools").data?.tools;
  const search = text.trim().toLowerCase();
  const calls = useQuery<CallPage>(search.length > 2 ? `/calls?q=${encodeURIComponent(search)}&limit=5` : null).data;
  return useMemo(() => {
    const questions = waiting.map((card) => ({
      label: card.short.replaceAll("`", ""),
      hint: `waits, ${card.danger}`,
      icon: IconInbox,
      go: () => go(`/inbox/${card.id}`),
    }));
    const pages = PAGES.map((page) => ({
      label: page.name,
      hint: `G ${page.key}`,
      icon: page.icon,
      go: () => go(page.path),
    }));
    const actions: Entry[] = [
      { label: "Verify the audit chain", hint: "action", icon: IconLink, go: () => go("/audit?verify=1") },
      { label: "Explain a call", hint: "action", icon: IconScale, go: () => go("/policy/explain") },
      { label: "Simulate a policy change", hint: "action", icon: IconScale, go: () => go("/policy/simulate") },
      { label: "Refused calls", hint: "view", icon: IconTimeline, go: () => go("/calls?outcome=refused") },
      { label: "Switch theme", hint: "action", icon: IconSun, go: switchTheme },
    ];
    const toolEntries = (tools ?? []).map((tool) => ({
      label: tool.name,
      hint: "tool",
      icon: IconTool,
      go: () => go(`/tools/${encodeURIComponent(tool.name)}`),
    }));
    const callEntries = (calls?.calls ?? []).map((call) => ({
      label: `${call.tool}  ${call.main}`,
      hint: "call",
      icon: IconTimeline,
      go: () => go(`/calls/${call.id}`),
    }));
    if (!search) return [...questions, ...pages, ...actions].slice(0, SHOWN);
    const fits = (entry: Entry) => entry.label.toLowerCase().includes(search) || entry.hint.includes(search);
    return [...[...questions, ...pages, ...actions, ...toolEntries].filter(fits), ...callEntries].slice(0, SHOWN);
  }, [waiting, tools, calls, search, go, switchTheme]);
}

function Palette({ close, switchTheme }: { close: () => void; switchTheme: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(text, switchTheme);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.go();
  };
  const press = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && entries.length) {
      event.preventDefault();
      setAt((at + step + entries.length) % entries.length);
    }
    if (event.key === "Enter") choose(entries[at]);
  };
  return (
    <Modal.Root
      opened
      onClose={close}
      padding={0}
      size={620}
      yOffset="12vh"
      lockScroll={false}
      transitionProps={{ duration: 0 }}
      classNames={SKIN}
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Search or jump to">
        <div className={s.pal}>
          <input
            data-autofocus
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={`palette-${at}`}
            aria-label="Search or jump to"
            placeholder="Search questions, calls, tools, pages…"
            value={text}
            onKeyDown={press}
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
          />
          <ul id="palette-list" role="listbox" aria-label="Results">
            {entries.map((entry, index) => (
              <li
                key={index}
                id={`palette-${index}`}
                role="option"
                aria-selected={index === at}
                onMouseMove={() => setAt(index)}
                onClick={() => choose(entry)}
                onKeyDown={press}
              >
                <entry.icon aria-hidden />
                <span className="cut">{entry.label}</span>
                <span className={s.k}>{entry.hint}</span>
              </li>
            ))}
            {!entries.length && (
              <li role="option" aria-selected={false} className="dim">
                Nothing is called “{text}”. A call id, a path or a tool name works too.
              </li>
            )}
          </ul>
        </div>
      </Modal.Content>
    </Modal.Root>
  );
}

const KEYS: [string, string][] = [
  ["⌘K", "search or jump"],
  ["G then I C Y T P S A U", "go to a page"],
  ["J  K", "next, previous"],
  ["/", "filter this page"],
  ["1  2  3", "once, this session, always"],
  ["A  A", "allow: press twice (critical: hold)"],
  ["D", "deny, with a note"],
  ["E", "edit the arguments"],
  ["V", "diff in one or two columns"],
  ["Esc", "step back"],
];

function Keys({ open, close }: { open: boolean; close: () => void }) {
  return (
    <Modal
      opened={open}
      onClose={close}
      title="Keyboard"
      closeButtonProps={{ "aria-label": "Close" }}
      lockScroll={false}
      size={420}
      transitionProps={{ duration: 0 }}
      classNames={SKIN}
    >
      <table className="tbl">
        <tbody>
          {KEYS.map(([key, does]) => (
            <tr key={key}>
              <td className="nowrap">
                <kbd>{key}</kbd>
              </td>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="dim sm mt8">
        Keys answer nothing in the first 0.7 s after a question or the window comes to the front.
      </p>
    </Modal>
  );
}
