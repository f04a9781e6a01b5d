/** Suggestions from your own answers. None is applied by itself. */
import { Link } from "wouter";
import { IconBulb } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import { ruleText } from "../../ui/format";
import { Empty, Failed, Loading } from "../../ui/states";
import { Visible } from "../../ui/Visible";
import type { SuggestionList } from "./types";

export function Suggestions() {
  const { data, error, reload } = useQuery<SuggestionList>("/policy/suggestions");
  if (!data && error) return <Failed what="Suggestions" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  if (!data.suggestions.length)
    return (
      <Empty title="Nothing to suggest">
        <p>When you answer the same question the same way often enough, a rule that says so is suggested here.</p>
      </Empty>
    );
  return (
    <div className="col gap12">
      {data.suggestions.map((each) => (
        <section key={each.sentence} className="card">
          <header>
            <IconBulb size={15} aria-hidden className="dim" />
            <h2>You {each.sentence}</h2>
            <Link className="bt sm right" href={`/policy/simulate?add=${encodeURIComponent(ruleOf(each.rule))}`}>
              Add to the policy…
            </Link>
          </header>
          <div className="in-pad row gap16 top wrap">
            <p className="grow mid">
              If you add this rule to your policy, such calls no longer ask. Undo stays possible.
            </p>
            <pre className="pre grow" tabIndex={0}>
              <Visible text={ruleOf(each.rule)} />
            </pre>
          </div>
        </section>
      ))}
      <p className="dim sm">Suggestions come from your own answers. None is applied by itself.</p>
    </div>
  );
}

/** The rule as an entry of a policy file. */
function ruleOf(rule: Record<string, unknown>): string {
  return ruleText(JSON.stringify(rule)).replace(/^/gm, "  ");
}
