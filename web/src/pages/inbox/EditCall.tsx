/** Editing the arguments of a call: the edited call is judged again, here as a preview and by the server on sending. */
import { useState } from "react";
import { Modal } from "@mantine/core";
import "@mantine/core/styles/ModalBase.css";
import "@mantine/core/styles/Modal.css";
import { Problem } from "../../api/client";
import type { Card } from "../../api/types";
import { Decided, Danger, VERDICT } from "../../ui/signs";
import { SKIN } from "../../ui/skin";
import { useExplain, type Explanation } from "../policy/useExplain";

interface Props {
  card: Card;
  ready: boolean;
  close: () => void;
  send: (args: Record<string, unknown>) => Promise<void>;
}

const asText = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

function parse(text: string, before: unknown): unknown {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export default function EditCall({ card, ready, close, send }: Props) {
  const args = card.args ?? {};
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [name, asText(value)])),
  );
  const changed = Object.keys(texts).filter((name) => texts[name] !== asText(args[name]));
  const edited = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parse(text, args[name])]));
  const judged = useExplain(card.tool, edited, changed.length > 0);
  const submit = async () => {
    await send(edited);
    close();
  };
  return (
    <Modal
      opened
      onClose={close}
      title="Edit the arguments"
      closeButtonProps={{ "aria-label": "Close" }}
      lockScroll={false}
      size={640}
      transitionProps={{ duration: 0 }}
      classNames={SKIN}
    >
      <div className="form">
        {Object.entries(texts).map(([name, text], index) => (
          <label className="f" key={name}>
            <span className="lab">
              <b>{name}</b>
              {changed.includes(name) && <span className="tag ac">changed</span>}
            </span>
            <textarea
              data-autofocus={index === 0 ? true : undefined}
              className="in mono"
              rows={Math.min(10, text.split("\n").length + (text.length > 60 ? 1 : 0))}
              value={text}
              onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
            />
          </label>
        ))}
        <p className="mid sm">
          The edited call is validated and judged again. If it is denied or more dangerous, nothing runs.
        </p>
        <Judgement judged={judged} changed={changed.length > 0} />
        <div className="row mt16">
          <button
            className="bt"
            disabled={!ready || !changed.length || card.danger === "critical"}
            onClick={() => void submit()}
          >
            Allow the edited call once
          </button>
          <button className="bt ghost" onClick={close}>
            Back
          </button>
        </div>
      </div>
    </Modal>
  );
}

function Judgement({ judged, changed }: { judged: Explanation | Problem | undefined; changed: boolean }) {
  if (!changed) return <p className="dim sm mt8">Nothing is changed.</p>;
  if (!judged) return <p className="dim sm mt8">Judging…</p>;
  if (judged instanceof Problem) return <p className="red sm mt8">{judged.message}</p>;
  return (
    <div className="row wrap sm mid mt8" role="status">
      <Decided effect={judged.effect}>{VERDICT[judged.effect]}</Decided>
      <Danger level={judged.danger} />
      <span>{judged.reason}</span>
    </div>
  );
}
