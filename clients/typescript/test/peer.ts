/** A peer that answers wrongly: a proxy between the client and the gateway, or a server without one. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Handler = (request: IncomingMessage, body: string, response: ServerResponse) => void | Promise<void>;

export class Peer {
  private constructor(
    private readonly server: Server,
    readonly url: string,
    /** The requests so far, as `POST /v1/verify`. */
    readonly seen: readonly string[],
  ) {}

  static async start(handler: Handler): Promise<Peer> {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Uint8Array[] = [];
      request.on("data", (chunk: Uint8Array) => chunks.push(chunk));
      request.on("end", () => {
        seen.push(`${request.method} ${request.url}`);
        void handler(request, Buffer.concat(chunks).toString(), response);
      });
    });
    // A peer that a failed test leaves open does not keep the tests from ending.
    server.unref();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Peer(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Answers with JSON. */
export function reply(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** A proxy to a gateway that changes answers, and refuses some requests itself. */
export function proxy(
  target: string,
  change: (answer: { body: Record<string, unknown>; headers: Record<string, string> }, path: string) => unknown,
  refuse: (path: string) => { readonly status: number; readonly code: string } | undefined = () => undefined,
): Promise<Peer> {
  return Peer.start(async (request, body, response) => {
    const refused = refuse(request.url ?? "");
    if (refused !== undefined) return reply(response, refused.status, { code: refused.code, message: "Refused." });
    const headers = Object.entries(request.headers).filter(([name]) => !["host", "connection", "content-length"].includes(name));
    const sent = await fetch(target + request.url, {
      method: request.method ?? "GET",
      headers: Object.fromEntries(headers) as Record<string, string>,
      ...(body !== "" && { body }),
    }).catch(() => undefined);
    if (sent === undefined) return void response.destroy();
    const answer = { body: (await sent.json()) as Record<string, unknown>, headers: Object.fromEntries(sent.headers) };
    if (sent.ok) await change(answer, request.url ?? "");
    const kept = Object.entries(answer.headers).filter(([name]) => name.startsWith("countersign-"));
    reply(response, sent.status, answer.body, Object.fromEntries(kept));
  });
}
