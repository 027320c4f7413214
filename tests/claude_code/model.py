#!/usr/bin/env python3
"""Stands in for the model of Claude Code: its turns are the tool calls of the script, one for each turn.

It prints its port, and then each result of a tool as a line of JSON.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = json.loads(sys.argv[1])
SEEN = set()


def events(model, block, reason):
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}}
    if block["type"] == "tool_use":
        text = json.dumps(block["input"])
        yield {"type": "content_block_start", "index": 0, "content_block": block | {"input": {}}}
        delta = {"type": "input_json_delta", "partial_json": text}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "text_delta", "text": block["text"]}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def new_results(messages):
    """Returns the results of tools that no earlier request had."""
    parts = [part for it in messages if isinstance(it["content"], list) for part in it["content"]]
    new = [it for it in parts if it["type"] == "tool_result" and it["tool_use_id"] not in SEEN]
    SEEN.update(it["tool_use_id"] for it in new)
    return new


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for result in new_results(request["messages"]):
            print(json.dumps(result["content"]), flush=True)
        block, reason = {"type": "text", "text": "Done."}, "end_turn"
        # Requests without tools are about the title of the session.
        if request.get("tools") and CALLS:
            name, arguments = CALLS.pop(0)
            block = {"type": "tool_use", "id": f"toolu_{len(CALLS)}", "name": name, "input": arguments}
            reason = "tool_use"
        lines = (f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events(request["model"], block, reason))
        body = "".join(lines).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
