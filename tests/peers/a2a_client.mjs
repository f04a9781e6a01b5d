// A client that uses the JavaScript SDK of A2A: prints what it sees as JSON.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const [place, url, token, binding] = process.argv.slice(2);
const require = createRequire(`${place}/`);
const sdk = require("@a2a-js/sdk/client");

const authorized = (target, options = {}) =>
  fetch(target, { ...options, headers: { ...options.headers, authorization: `Bearer ${token}` } });
const options = sdk.ClientFactoryOptions.createFrom(sdk.ClientFactoryOptions.default, {
  transports: [
    new sdk.JsonRpcTransportFactory({ fetchImpl: authorized }),
    new sdk.RestTransportFactory({ fetchImpl: authorized }),
  ],
  preferredTransports: [binding],
  cardResolver: new sdk.DefaultAgentCardResolver({ fetchImpl: authorized }),
});
const client = await new sdk.ClientFactory(options).createFromUrl(url);

const request = (part, more = {}) => ({
  message: { messageId: randomUUID(), role: 1, parts: [{ content: part }], ...more },
});
const call = (path) => ({
  $case: "data",
  value: { toolId: "write_file", parameters: { path, content: "written" } },
});
const text = (value) => ({ $case: "text", value });

const card = await client.getAgentCard();
const events = [];
for await (const event of client.sendMessageStream(request(text("/calculate expression='6 * 7'"))))
  events.push(event.payload ?? event);
const asked = await client.sendMessage(request(call("a.txt")));
const task = asked.payload?.value ?? asked;
const ended = await client.sendMessage(request(text("yes"), { taskId: task.id, contextId: task.contextId }));
const found = await client.getTask({ id: task.id });
const other = await client.sendMessage(request(call("b.txt")));
const canceled = await client.cancelTask({ id: (other.payload?.value ?? other).id });
const state = (each) => (each.payload?.value ?? each).status.state;
console.log(
  JSON.stringify({
    skills: card.skills.map((skill) => skill.id),
    events: events.map((event) => event.$case),
    result: events[1].value.artifact.parts[0].content.value,
    states: [asked, ended, found, canceled].map(state),
  }),
);
