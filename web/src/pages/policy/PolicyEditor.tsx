/** An editor of policy YAML, with completion of keys and the server's own complaints as lint. */
import { useEffect, useRef } from "react";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { setDiagnostics } from "@codemirror/lint";
import { useQuery } from "../../api/query";
import { appearance } from "../../ui/codemirror";
import type { PolicyProblem } from "./types";

interface Props {
  text: string;
  change: (text: string) => void;
  diagnostics: PolicyProblem[];
}

interface KeySchema {
  description?: string;
  enum?: unknown[];
  anyOf?: KeySchema[];
  items?: KeySchema;
}

interface PolicySchema {
  $defs: { rule: { properties: Record<string, KeySchema> } };
}

/** The words that a key takes, if it takes only some. */
const wordsOf = (key: KeySchema | undefined): string[] =>
  (key?.enum ?? key?.anyOf?.flatMap((each) => each.enum ?? []) ?? []).map(String);

function complete(schema: () => PolicySchema | undefined) {
  return (context: CompletionContext): CompletionResult | null => {
    const keys = schema()?.$defs.rule.properties ?? {};
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const value = /^\s*-?\s*(\w+):\s*\[?(?:\w+,\s*)*(\w*)$/.exec(before);
    if (value) {
      const options = wordsOf(keys[value[1]]).map((word) => ({ label: word }));
      return { from: context.pos - value[2].length, options };
    }
    const key = /^\s*-?\s*(\w*)$/.exec(before);
    if (!key || (!key[1] && !context.explicit)) return null;
    const options = Object.entries(keys).map(([name, each]) => ({
      label: name,
      detail: each.description,
      apply: `${name}: `,
    }));
    return { from: context.pos - key[1].length, options };
  };
}

export function PolicyEditor({ text, change, diagnostics }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const { data } = useQuery<PolicySchema>("/policy/schema");
  const schema = useRef(data);
  schema.current = data;
  useEffect(() => {
    const state = EditorState.create({
      doc: text,
      extensions: [
        ...appearance("policy.yaml", "Editor"),
        history(),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        autocompletion({ override: [complete(() => schema.current)] }),
        EditorView.updateListener.of((update) => update.docChanged && change(update.state.doc.toString())),
      ],
    });
    const made = new EditorView({ parent: box.current!, state });
    view.current = made;
    return () => made.destroy();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the editor owns its text once it is made
  }, []);
  useEffect(() => {
    const made = view.current;
    if (!made) return;
    const marks = diagnostics.flatMap((each) => {
      if (!each.line || each.line > made.state.doc.lines) return [];
      const line = made.state.doc.line(each.line);
      return [{ from: line.from, to: line.to, severity: "error" as const, message: each.problem }];
    });
    made.dispatch(setDiagnostics(made.state, marks));
  }, [diagnostics]);
  return <div className="diff" ref={box} />;
}
