/** The REST API, read from its own OpenAPI document: no other program, and nothing from the network. */
import { useState } from "react";
import { API } from "../../api/client";
import { useQuery } from "../../api/query";
import { Copy } from "../../ui/controls";
import { count } from "../../ui/format";
import { Failed, Loading } from "../../ui/states";
import { Prose } from "../../ui/Visible";

interface Schema {
  $ref?: string;
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  additionalProperties?: Schema | boolean;
  properties?: Record<string, Schema>;
  required?: string[];
}

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

interface Entry extends Operation {
  method: string;
  path: string;
}

const nameOf = (schema: Schema) => schema.$ref?.split("/").at(-1) ?? "";

/** The type as one reads it: the name of a schema, the words that are allowed, or the JSON type. */
function typeOf(schema: Schema | undefined): string {
  if (!schema) return "nothing";
  if (schema.$ref) return nameOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items ?? {})}[]`;
  if (schema.type === "object" && typeof schema.additionalProperties === "object")
    return `{name: ${typeOf(schema.additionalProperties)}}`;
  return schema.type ?? "any";
}

export default function ApiDocs() {
  const { data, error, reload } = useQuery<Document>("/openapi.json");
  const [search, setSearch] = useState("");
  if (!data && error) return <Failed what="The API" problem={error} retry={reload} />;
  if (!data) return <Loading />;
  const all: Entry[] = Object.entries(data.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
  );
  const words = search.toLowerCase();
  const shown = all.filter((each) => `${each.method} ${each.path} ${each.summary}`.toLowerCase().includes(words));
  const tags = [...new Set(shown.map((each) => each.tags[0]))];
  return (
    <>
      <p className="mid prose">
        Everything here can be done by a program too: JSON over HTTP, with a token from{" "}
        <code>toolreeve tokens add</code>. Generators of clients read{" "}
        <a className="link" href={`${API}/openapi.json`}>
          the OpenAPI document
        </a>
        .
      </p>
      <div className="row mt16">
        <input
          className="in"
          data-filter
          type="search"
          aria-label="Find an endpoint"
          placeholder="Find an endpoint"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <span className="dim sm num nowrap">{count(shown.length, "endpoint")}</span>
      </div>
      {tags.map((tag) => (
        <section key={tag} className="card mt16">
          <header>
            <h2>{tag}</h2>
          </header>
          {shown
            .filter((each) => each.tags[0] === tag)
            .map((each) => (
              <Endpoint key={each.operationId} entry={each} schemas={data.components.schemas} />
            ))}
        </section>
      ))}
    </>
  );
}

function Endpoint({ entry, schemas }: { entry: Entry; schemas: Record<string, Schema> }) {
  const body = entry.requestBody?.content["application/json"]?.schema;
  const answer = Object.values(entry.responses["200"]?.content ?? {})[0]?.schema;
  const data = body ? " -H 'content-type: application/json' -d '{}'" : "";
  const curl = `curl -sS -X ${entry.method} "${location.origin}${entry.path}" -H "authorization: Bearer $TOKEN"${data}`;
  return (
    <details className="api">
      <summary>
        <b className="mono sm">{entry.method}</b> <code>{entry.path}</code>
        <span className="mid sm">
          {" "}
          <Prose text={entry.summary} />
        </span>
      </summary>
      <div className="in-pad col gap8">
        <p className="mid sm">
          <Prose text={entry.description} />
        </p>
        <Fields
          title="Parameters"
          fields={(entry.parameters ?? []).map((each) => ({
            name: each.name,
            required: each.required ?? false,
            schema: { ...each.schema, description: each.description ?? each.schema.description },
          }))}
        />
        {body && <Fields title="Body" fields={fieldsOf(schemas[nameOf(body)])} />}
        {answer && <Fields title={`Answer: ${typeOf(answer)}`} fields={fieldsOf(schemas[nameOf(answer)])} />}
        <div className="row">
          <code className="sm wrapx">{curl}</code>
          <Copy text={curl} label={`Copy the command for ${entry.method} ${entry.path}`} />
        </div>
      </div>
    </details>
  );
}

interface Field {
  name: string;
  required: boolean;
  schema: Schema;
}

const fieldsOf = (schema: Schema | undefined): Field[] =>
  Object.entries(schema?.properties ?? {}).map(([name, each]) => ({
    name,
    required: schema?.required?.includes(name) ?? false,
    schema: each,
  }));

function Fields({ title, fields }: { title: string; fields: Field[] }) {
  if (!fields.length) return null;
  return (
    <div>
      <div className="dim sm">{title}</div>
      <dl className="kv">
        {fields.map(({ name, required, schema }) => (
          <FieldRow key={name} name={name} required={required} schema={schema} />
        ))}
      </dl>
    </div>
  );
}

function FieldRow({ name, required, schema }: Field) {
  const preset =
    schema.default === undefined || schema.default === null ? "" : `, default ${JSON.stringify(schema.default)}`;
  return (
    <>
      <dt className="mono sm">{name}</dt>
      <dd className="sm wrapx">
        <code>{typeOf(schema)}</code>
        <span className="dim">
          {required ? ", required" : preset}
          {schema.description && `: ${schema.description}`}
        </span>
      </dd>
    </>
  );
}
