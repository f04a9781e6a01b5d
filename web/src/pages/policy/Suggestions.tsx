/** Suggestions from your own answers. None is applied by itself. */
import { Link } from "wouter";
import { IconBulb } from "@tabler/icons-react";
import { useQuery } from "../../api/query";
import { Empty, Failed, Loading } from "../../ui/states";
import { Visible } from "../../ui/Visible";

interface Suggestion {
  title: string;
  why: string;
  effect: string;
  yaml: string;
}

export function Suggestions() {
  const { data, error, reload } = useQuery<{ suggestions: Suggestion[] }>("/policy/suggestions");
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
        <section key={each.title} className="card">
          <header>
            <IconBulb size={15} aria-hidden className="dim" />
            <h2>{each.title}</h2>
            <Link className="bt sm right" href={`/policy/simulate?draft=${encodeURIComponent(each.yaml)}`}>
              Simulate
            </Link>
          </header>
          <div className="in-pad row gap16 top wrap">
            <div className="grow">
              <p>{each.why}</p>
              {each.effect && <p className="dim sm mt8">If added: {each.effect}</p>}
            </div>
            <pre className="pre grow" tabIndex={0}>
              <Visible text={each.yaml} />
            </pre>
          </div>
        </section>
      ))}
      <p className="dim sm">Suggestions come from your own answers. None is applied by itself.</p>
    </div>
  );
}
