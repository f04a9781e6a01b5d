/** Tools whose definition changed since it was accepted: the difference, what was found in it, keep out or accept. */
import { post, Problem } from "../../api/client";
import { invalidate } from "../../api/query";
import { Diff } from "../../ui/Diff";
import { toast } from "../../ui/states";
import type { Pin } from "./types";

export function Pins({ server, pins }: { server: string; pins: Pin[] }) {
  return pins.map((pin) => <OnePin key={pin.tool} server={server} pin={pin} />);
}

function OnePin({ server, pin }: { server: string; pin: Pin }) {
  const accept = async () => {
    try {
      await post(`/servers/${encodeURIComponent(server)}/pins/${encodeURIComponent(pin.tool)}/accept`, {
        digest: pin.digest,
      });
      toast(`Accepted: the new definition of ${pin.tool} is pinned, and the decision is recorded`);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      toast(problem.line);
    }
    invalidate("/servers", "/tools");
  };
  return (
    <section className="card sect" aria-label={`${pin.tool} changed its definition`}>
      <header>
        <span className="dot warn" aria-hidden />
        <h2>{pin.tool} changed its definition</h2>
        <span className="dim sm">calls answer E_TOOL_CHANGED until you accept it</span>
      </header>
      <Diff text={pin.difference} />
      <footer className="row">
        <span className="dim sm">Nothing to do keeps it out. Accepting pins the new text for this server only.</span>
        <button className="bt sm right" onClick={() => void accept()}>
          Accept the change
        </button>
      </footer>
    </section>
  );
}
