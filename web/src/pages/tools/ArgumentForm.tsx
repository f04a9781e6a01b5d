/** A form for the arguments of a tool, from its JSON Schema; what it cannot draw is edited as JSON. */
import { useState } from "react";
import { IconCode } from "@tabler/icons-react";
import type { Property, ToolDetail } from "./types";

export interface FieldError {
  name: string;
  message: string;
}

interface Props {
  tool: ToolDetail;
  values: Record<string, unknown>;
  setValues: (values: Record<string, unknown>) => void;
  errors: FieldError[];
}

export function ArgumentForm({ tool, values, setValues, errors }: Props) {
  const [json, setJson] = useState<string | null>(null);
  const properties = Object.entries(tool.input_schema.properties ?? {});
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...rest } = values;
    setValues(value === undefined || value === "" ? rest : { ...values, [name]: value });
  };
  const touched = Object.keys(values).length > 0;
  return (
    <section className="card form">
      <header>
        <h3>Try it</h3>
        <button
          className="bt sm ghost right"
          onClick={() => setJson(json === null ? JSON.stringify(values, null, 2) : null)}
        >
          <IconCode aria-hidden />
          {json === null ? "Edit as JSON" : "Edit as form"}
        </button>
      </header>
      <div className="in-pad">
        {json !== null ? (
          <JsonField text={json} setText={setJson} setValues={setValues} />
        ) : properties.length ? (
          properties.map(([name, property]) => (
            <Field
              key={name}
              name={name}
              property={property}
              required={tool.input_schema.required?.includes(name) ?? false}
              value={values[name]}
              set={(value) => set(name, value)}
              error={touched ? errors.find((each) => each.name === name)?.message : undefined}
            />
          ))
        ) : (
          <p className="dim">It takes no arguments.</p>
        )}
      </div>
    </section>
  );
}

interface JsonProps {
  text: string;
  setText: (text: string) => void;
  setValues: (values: Record<string, unknown>) => void;
}

function JsonField({ text, setText, setValues }: JsonProps) {
  const [problem, setProblem] = useState("");
  const change = (value: string) => {
    setText(value);
    try {
      setValues(JSON.parse(value) as Record<string, unknown>);
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <label className="f">
      <span className="lab">
        <b>arguments</b>
      </span>
      <textarea className="in mono" rows={10} value={text} onChange={(event) => change(event.target.value)} />
      {problem && <div className="err">{problem}</div>}
    </label>
  );
}

type Kind = "boolean" | "enum" | "number" | "json" | "text" | "line";
const LONG = /content|body|command|sql|text|patch|script|html/;

function kindOf(name: string, property: Property): Kind {
  if (property.enum) return "enum";
  const types = [property.type ?? property.anyOf?.map((each) => each.type)].flat(2).filter((each) => each !== "null");
  if (types.length !== 1)
    return types.every((each) => each === "number" || each === "integer") && types.length ? "number" : "json";
  if (types[0] === "boolean") return "boolean";
  if (types[0] === "integer" || types[0] === "number") return "number";
  if (types[0] === "string") return LONG.test(name) ? "text" : "line";
  return "json";
}

interface FieldProps {
  name: string;
  property: Property;
  required: boolean;
  value: unknown;
  set: (value: unknown) => void;
  error?: string;
}

function Field({ name, property, required, value, set, error }: FieldProps) {
  const kind = kindOf(name, property);
  const id = `field-${name}`;
  const words = { boolean: "boolean", enum: "one of", number: "number", json: "JSON", text: "string", line: "string" }[
    kind
  ];
  return (
    <div className="f">
      <label className="lab" htmlFor={id}>
        <b>{name}</b>
        <span className="dim sm">
          {words}
          {required ? "" : ", optional"}
        </span>
      </label>
      <Input id={id} kind={kind} property={property} value={value} set={set} invalid={!!error} />
      {property.description && <div className="help">{property.description}</div>}
      {error && <div className="err">{error}</div>}
    </div>
  );
}

interface InputProps {
  id: string;
  kind: Kind;
  property: Property;
  value: unknown;
  set: (value: unknown) => void;
  invalid: boolean;
}

function Input({ id, kind, property, value, set, invalid }: InputProps) {
  const placeholder = property.default === undefined || property.default === null ? "" : String(property.default);
  const shared = { id, className: "in mono", "aria-invalid": invalid, placeholder };
  switch (kind) {
    case "boolean":
      return (
        <span className="row">
          <input
            id={id}
            className="ck"
            type="checkbox"
            checked={Boolean(value ?? property.default)}
            onChange={(event) => set(event.target.checked)}
          />
          <span className="dim sm">{String(value ?? property.default ?? false)}</span>
        </span>
      );
    case "enum":
      return (
        <select id={id} className="in" value={String(value ?? "")} onChange={(event) => set(event.target.value)}>
          <option value="">{placeholder ? `${placeholder} (default)` : ""}</option>
          {property.enum!.map((each) => (
            <option key={String(each)}>{String(each)}</option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          {...shared}
          inputMode="numeric"
          value={value === undefined ? "" : String(value)}
          onChange={(event) => set(numberOf(event.target.value))}
        />
      );
    case "json":
      return <JsonInput shared={shared} value={value} set={set} />;
    case "text":
      return (
        <textarea {...shared} rows={3} value={String(value ?? "")} onChange={(event) => set(event.target.value)} />
      );
    case "line":
      return <input {...shared} value={String(value ?? "")} onChange={(event) => set(event.target.value)} />;
  }
}

function numberOf(text: string): unknown {
  if (text.trim() === "") return undefined;
  return Number.isNaN(Number(text)) ? text : Number(text);
}

function JsonInput({ shared, value, set }: { shared: object; value: unknown; set: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const change = (next: string) => {
    setText(next);
    if (!next.trim()) return set(undefined);
    try {
      set(JSON.parse(next));
    } catch {
      set(next);
    }
  };
  return <textarea {...shared} rows={2} value={text} onChange={(event) => change(event.target.value)} />;
}
