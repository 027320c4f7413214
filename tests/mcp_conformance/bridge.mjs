// Serves an MCP server on standard input and output over HTTP, because the conformance suite speaks HTTP only.
//
//   node bridge.mjs COMMAND ARGUMENTS…    at /mcp, on localhost and the port in PORT
//
// Each session has its own process. Messages are forwarded as they are. MODULES is the folder with the packages.
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.MODULES}/@modelcontextprotocol/sdk/dist/esm/${file}`));
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");
const { createMcpExpressApp } = await sdk("server/express.js");

const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

async function begin() {
  const server = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  const client = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, client),
  });
  server.onmessage = (message) => client.send(message);
  client.onmessage = (message) => server.send(message);
  client.onclose = () => server.close();
  server.onclose = () => client.close();
  await Promise.all([server.start(), client.start()]);
  return client;
}

// The application checks the host.
const app = createMcpExpressApp({ host: "127.0.0.1" });
app.all("/mcp", async (request, response) => {
  const session = sessions.get(request.headers["mcp-session-id"]) ?? (await begin());
  await session.handleRequest(request, response, request.body);
});
app.listen(Number(process.env.PORT), "127.0.0.1");
