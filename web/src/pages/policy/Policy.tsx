/** Policy: the rules in force, what was granted, what would be decided, what a change would do. */
import { lazy, Suspense } from "react";
import { useQuery } from "../../api/query";
import { Loading } from "../../ui/states";
import { Tabs } from "../../ui/Tabs";
import { Explain } from "./Explain";
import { Grants } from "./Grants";
import { Rules } from "./Rules";
import { Suggestions } from "./Suggestions";
import type { RuleList } from "./types";

const Simulate = lazy(() => import("./Simulate"));

export default function Policy({ params }: { params: { tab?: string } }) {
  const rules = useQuery<RuleList>("/policy/rules");
  const current = params.tab ? `/policy/${params.tab}` : "/policy";
  const tabs = [
    { path: "/policy", label: "Rules", count: rules.data?.rules.filter((rule) => rule.origin !== "floor").length },
    { path: "/policy/grants", label: "Grants" },
    { path: "/policy/explain", label: "Explain" },
    { path: "/policy/simulate", label: "Edit" },
    { path: "/policy/suggestions", label: "Suggestions" },
  ];
  return (
    <>
      <Tabs label="Policy" tabs={tabs} current={current} />
      <div className="pad">
        <Suspense fallback={<Loading />}>
          {params.tab === "grants" ? (
            <Grants />
          ) : params.tab === "explain" ? (
            <Explain />
          ) : params.tab === "simulate" ? (
            <Simulate />
          ) : params.tab === "suggestions" ? (
            <Suggestions />
          ) : (
            <Rules query={rules} />
          )}
        </Suspense>
      </div>
    </>
  );
}
