// Stands for somebody else's service: moves money once for each Idempotency-Key, and for nobody without its own key.
import { createServer } from "node:http";
import { given } from "./countersign.ts";

const moved = new Map<string, { transfer: string; order: string }>();

const server = createServer(async (request, response) => {
  const answer = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
  if (request.headers.authorization !== `Bearer ${given("BANK_KEY")}`) return answer(401, {});
  const path = request.url ?? "";
  if (request.method === "GET" && path === "/transfers") return answer(200, [...moved.values()]);
  if (request.method === "GET") {
    const found = moved.get(path.slice("/transfers/".length));
    return answer(found ? 200 : 404, found ?? {});
  }
  const key = request.headers["idempotency-key"];
  let order = "";
  for await (const part of request) order += part;
  if (typeof key !== "string") return answer(400, {});
  const before = moved.get(key);
  if (before) return answer(before.order === order ? 200 : 422, before);
  const transfer = `transfer-${moved.size + 1}`;
  moved.set(key, { transfer, order });
  return answer(201, { transfer });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address && typeof address === "object") console.log(`http://127.0.0.1:${address.port}`);
});
