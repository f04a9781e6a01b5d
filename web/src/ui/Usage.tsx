/** How much a tool or server was used in the last week, in a few words. */
import { useQuery } from "../api/query";
import type { Schemas } from "../api/types";
import { count, ms } from "./format";

type Groups = Schemas["CallGroups"];

export function Usage({ by, name }: { by: "tool" | "server"; name: string }) {
  const groups = useQuery<Groups>(`/metrics/summary?by=${by}&range=7d`).data?.groups;
  if (!groups) return null;
  const found = groups.find((each) => each.key === name);
  if (!found) return <>No calls in 7 d.</>;
  return (
    <>
      {count(found.calls, "call")} in 7 d{found.p95 !== null && `, p95 ${ms(found.p95)}`}, {found.err.toFixed(1)} % not
      ok.
    </>
  );
}
