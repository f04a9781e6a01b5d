/** One clock for every relative time on screen. */
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();

setInterval(() => {
  now = Date.now();
  listeners.forEach((each) => each());
}, 1000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useNow = () => useSyncExternalStore(subscribe, () => now);
