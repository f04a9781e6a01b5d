/** An editor of policy YAML, with completion of keys and the server's own complaints as lint. */
import { useEffect, useRef } from "react";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { setDiagnostics } from "@codemirror/lint";
import { useQuery } from "../../api/query";
import { appearance } from "../../ui/codemirror";

export interface Diagnostic {
  line: number | null;
  message: string;
}

interface Props {
  text: string;
  change: (text: string) => void;
  diagnostics: Diagnostic[];
}

interface KeySchema {
  keys: { name: string; description: string; values?: string[] }[];
}

function complete(schema: () => KeySchema | undefined) {
  return (context: CompletionContext): CompletionResult | null => {
    const keys = schema()?.keys ?? [];
    const line = context.state.doc
      .lineAt(context.pos)
      .text.slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
    const value = /^\s*-?\s*(\w+):\s*(\w*)$/.exec(line);
    if (value) {
      const values = keys.find((key) => key.name === value[1])?.values ?? [];
      return { from: context.pos - value[2].length, options: values.map((each) => ({ label: each })) };
    }
    const key = /^\s*-?\s*(\w*)$/.exec(line);
    if (!key || (!key[1] && !context.explicit)) return null;
    const options = keys.map((each) => ({ label: each.name, detail: each.description, apply: `${each.name}: ` }));
    return { from: context.pos - key[1].length, options };
  };
}

export function PolicyEditor({ text, change, diagnostics }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const { data } = useQuery<KeySchema>("/policy/schema");
  const schema = useRef(data);
  schema.current = data;
  useEffect(() => {
    const state = EditorState.create({
      doc: text,
      extensions: [
        ...appearance("policy.yaml", "Editor"),
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
      return [{ from: line.from, to: line.to, severity: "error" as const, message: each.message }];
    });
    made.dispatch(setDiagnostics(made.state, marks));
  }, [diagnostics]);
  return <div className="diff" ref={box} />;
}
