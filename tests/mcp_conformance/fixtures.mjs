// The server that the conformance suite of MCP describes: with all of its tools, resources and prompts.
//
//   node fixtures.mjs stdio    on standard input and output
//   node fixtures.mjs          over HTTP at /mcp, on localhost and the port in PORT
//
// MODULES is the folder with the packages.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.MODULES}/@modelcontextprotocol/sdk/dist/esm/${file}`));
const { Server } = await sdk("server/index.js");
const types = await sdk("types.js");

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";
const PAUSE_MILLIS = 50;

const text = (it) => ({ type: "text", text: it });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const audio = { type: "audio", data: WAV, mimeType: "audio/wav" };
const embedded = (uri, mimeType, content) => ({ type: "resource", resource: { uri, mimeType, text: content } });
const object = (properties = {}, more = {}) => ({ type: "object", properties, ...more });
const string = { type: "string" };

const asksForInput = (name, properties) => ({
  name,
  async run(_, extra) {
    const params = { mode: "form", message: "Please answer.", requestedSchema: object(properties) };
    const { action, content } = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
    return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)];
  },
});

const titled = (values) => Object.entries(values).map(([value, title]) => ({ const: value, title }));
const options = ["option1", "option2", "option3"];

const TOOLS = [
  { name: "test_simple_text", run: () => [text("This is a simple text response for testing.")] },
  { name: "test_image_content", run: () => [image] },
  { name: "test_audio_content", run: () => [audio] },
  {
    name: "test_embedded_resource",
    run: () => [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  },
  {
    name: "test_multiple_content_types",
    run: () => [
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  },
  {
    name: "test_tool_with_logging",
    async run(_, extra) {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
        await pause(PAUSE_MILLIS);
      }
      return [text("Done.")];
    },
  },
  {
    name: "test_tool_with_progress",
    async run(_, extra) {
      const progressToken = extra._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        const params = { progressToken, progress, total: 100 };
        if (progressToken !== undefined) await extra.sendNotification({ method: "notifications/progress", params });
        await pause(PAUSE_MILLIS);
      }
      return [text("Done.")];
    },
  },
  {
    name: "test_error_handling",
    run() {
      throw new Error("This tool intentionally returns an error for testing");
    },
  },
  {
    name: "test_sampling",
    input: object({ prompt: string }, { required: ["prompt"] }),
    async run({ prompt }, extra) {
      const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
      const result = await extra.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema);
      return [text(`LLM response: ${result.content.text}`)];
    },
  },
  {
    name: "test_elicitation",
    input: object({ message: string }, { required: ["message"] }),
    async run({ message }, extra) {
      const properties = {
        username: { ...string, description: "User's response" },
        email: { ...string, description: "User's email address" },
      };
      const requestedSchema = object(properties, { required: ["username", "email"] });
      const params = { mode: "form", message, requestedSchema };
      const { action, content } = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
      return [text(`User response: <action: ${action}, content: ${JSON.stringify(content)}>`)];
    },
  },
  asksForInput("test_elicitation_sep1034_defaults", {
    name: { ...string, default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { ...string, enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  }),
  asksForInput("test_elicitation_sep1330_enums", {
    untitledSingle: { ...string, enum: options },
    titledSingle: { ...string, oneOf: titled({ value1: "First Option", value2: "Second Option", value3: "Third Option" }) },
    legacyEnum: { ...string, enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
    untitledMulti: { type: "array", items: { ...string, enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled({ value1: "First Choice", value2: "Second Choice", value3: "Third Choice" }) } },
  }),
];

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "This resource can be watched." },
};

const user = (content) => ({ role: "user", content });
const argument = (name) => ({ name, description: `The argument ${name}`, required: true });
const PROMPTS = [
  { name: "test_simple_prompt", get: () => [user(text("This is a simple prompt for testing."))] },
  {
    name: "test_prompt_with_arguments",
    arguments: [argument("arg1"), argument("arg2")],
    get: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  {
    name: "test_prompt_with_embedded_resource",
    arguments: [argument("resourceUri")],
    get: ({ resourceUri }) => [
      user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
      user(text("Please process the embedded resource above.")),
    ],
  },
  {
    name: "test_prompt_with_image",
    get: () => [user(image), user(text("Please analyze the image above."))],
  },
];

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) {
    const found = { id, templateTest: true, data: `Data for ID: ${id}` };
    return { mimeType: "application/json", text: JSON.stringify(found) };
  }
  if (!RESOURCES[uri]) throw new types.McpError(types.ErrorCode.InvalidParams, `Resource ${uri} not found`);
  return RESOURCES[uri];
}

function named(all, name) {
  const found = all.find((it) => it.name === name);
  if (!found) throw new types.McpError(types.ErrorCode.InvalidParams, `${name} not found`);
  return found;
}

async function call({ params }, extra) {
  const { name, arguments: input } = params;
  const tool = named(TOOLS, name);
  try {
    return { content: await tool.run(input, extra) };
  } catch (error) {
    return { isError: true, content: [text(error.message)] };
  }
}

function makeServer() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: "fixtures", version: "1" }, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(schema, handler);
  const about = ({ name }) => ({ name, description: `The fixture ${name}` });
  on(types.ListToolsRequestSchema, () => ({ tools: TOOLS.map((it) => ({ ...about(it), inputSchema: it.input ?? object() })) }));
  on(types.CallToolRequestSchema, call);
  on(types.ListResourcesRequestSchema, () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({ uri, ...about({ name: uri }), mimeType })),
  }));
  on(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", ...about({ name: "template" }) }],
  }));
  on(types.ReadResourceRequestSchema, ({ params: { uri } }) => ({ contents: [{ uri, ...read(uri) }] }));
  on(types.SubscribeRequestSchema, () => ({}));
  on(types.UnsubscribeRequestSchema, () => ({}));
  on(types.ListPromptsRequestSchema, () => ({ prompts: PROMPTS.map((it) => ({ ...about(it), arguments: it.arguments })) }));
  on(types.GetPromptRequestSchema, ({ params }) => ({ messages: named(PROMPTS, params.name).get(params.arguments) }));
  on(types.CompleteRequestSchema, () => ({ completion: { values: ["paris", "park", "party"], total: 3, hasMore: false } }));
  return server;
}

async function overHttp() {
  const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");
  const { createMcpExpressApp } = await sdk("server/express.js");
  const sessions = new Map();
  // The application checks the host.
  const app = createMcpExpressApp({ host: "127.0.0.1" });
  app.all("/mcp", async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await makeServer().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  app.listen(Number(process.env.PORT), "127.0.0.1");
}

if (process.argv[2] === "stdio") {
  const { StdioServerTransport } = await sdk("server/stdio.js");
  await makeServer().connect(new StdioServerTransport());
} else {
  await overHttp();
}
