/** The API of a scripted model for Claude Code: it makes its calls in one message, and then ends. */

import { Peer } from "../peer.js";

interface Call {
  readonly id: string;
  readonly tool: string;
  readonly arguments: object;
}

interface Message {
  readonly content: string | readonly { readonly type: string; readonly tool_use_id?: string; readonly content?: unknown }[];
}

type Block = { type: "text"; text: string } | { type: "tool_use"; id: string; name: string; input: object };

/** Starts the model. `results` gets the result of each call by its id. */
export async function scriptedModel(calls: readonly Call[], results: Record<string, string>): Promise<Peer> {
  return Peer.start((_, body, response) => {
    const request = body === "" ? {} : (JSON.parse(body) as { model?: string; tools?: unknown[]; messages?: Message[] });
    const parts = (request.messages ?? []).flatMap((message) => (typeof message.content === "string" ? [] : message.content));
    for (const part of parts) if (part.type === "tool_result") results[part.tool_use_id ?? ""] = JSON.stringify(part.content);
    const isDone = parts.some((part) => part.type === "tool_result");
    // Requests without tools are about the title of the session.
    const asks = !isDone && (request.tools?.length ?? 0) > 0;
    const blocks: Block[] = asks
      ? calls.map((call) => ({ type: "tool_use", id: call.id, name: `mcp__crm__${call.tool}`, input: call.arguments }))
      : [{ type: "text", text: "Done." }];
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events(request.model ?? "", blocks, asks ? "tool_use" : "end_turn")) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
}

function* events(model: string, blocks: readonly Block[], reason: string): Generator<{ type: string }> {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model, content: [], usage, stop_reason: null, stop_sequence: null };
  yield { type: "message_start", message } as { type: string };
  for (const [index, block] of blocks.entries()) {
    const begun = block.type === "text" ? { ...block, text: "" } : { ...block, input: {} };
    const delta = block.type === "text" ? { type: "text_delta", text: block.text } : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
    yield { type: "content_block_start", index, content_block: begun } as { type: string };
    yield { type: "content_block_delta", index, delta } as { type: string };
    yield { type: "content_block_stop", index } as { type: string };
  }
  yield { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage } as { type: string };
  yield { type: "message_stop" };
}
