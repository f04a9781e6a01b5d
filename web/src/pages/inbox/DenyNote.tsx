/** A no, with a note that the agent reads. */
import { useState } from "react";
import s from "./Inbox.module.css";

export function DenyNote({ ready, deny, back }: { ready: boolean; deny: (note: string) => void; back: () => void }) {
  const [note, setNote] = useState("");
  return (
    <div className="col">
      <label htmlFor="note" className="sm b">
        Note to the agent <span className="dim">(it reads this, and tries another way)</span>
      </label>
      <textarea
        id="note"
        className="in"
        rows={2}
        autoFocus
        value={note}
        placeholder="For example: open a pull request instead"
        onChange={(event) => setNote(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) deny(note);
          if (event.key === "Escape") back();
        }}
      />
      <div className={s.acts}>
        <button className={`bt ${s.deny}`} disabled={!ready} onClick={() => deny(note)}>
          <span>{note ? "Deny with note" : "Deny"}</span>
          <kbd>⌘↵</kbd>
        </button>
        <button className={`bt ghost ${s.allow}`} onClick={back}>
          Back
        </button>
      </div>
    </div>
  );
}
