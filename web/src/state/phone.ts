/** Whether the screen is a phone's: one pane at a time. */
import { useSyncExternalStore } from "react";

const query = matchMedia("(max-width: 760px)");

export const usePhone = () =>
  useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
