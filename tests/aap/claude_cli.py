#!/usr/bin/env python3
"""Stands in for the CLI of the Claude Agent SDK, which cannot run without its provider.

It speaks the control protocol of the SDK on standard input and output: it asks the hooks before and after a call, asks
for a permission if a hook says `ask`, calls the tool on the MCP server in the process of the SDK, and stores the
transcript of the session. Of several answers of hooks it follows the strictest, as the CLI does. A resumed session
continues with the call that has no result. The CLI promises this for deferred calls. For calls that waited when the
process died it is an assumption of this test.
"""

import json
import os
import sys
import uuid
from pathlib import Path

STRICTEST_FIRST = ("deny", "defer", "ask", "allow")
CALL = "toolu_1"


class Connection:
    """The control protocol."""

    def __init__(self):
        self.hooks = None
        self.numbers = iter(range(1000))
        self.prompts = []

    def send(self, message):
        print(json.dumps(message), flush=True)

    def receive(self):
        line = sys.stdin.readline()
        if not line:
            sys.exit(1)
        message = json.loads(line)
        if message["type"] == "user":
            self.prompts.append(message["message"]["content"])
        elif message["type"] == "control_request":
            self.hooks = message["request"].get("hooks") or {}
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self.send({"type": "control_response", "response": answer})
        return message

    def ask_all(self, requests):
        """Sends requests to the SDK at once, and returns their responses."""
        numbers = [f"cli-{next(self.numbers)}" for _ in requests]
        for number, request in zip(numbers, requests, strict=True):
            self.send({"type": "control_request", "request_id": number, "request": request})
        answers = {}
        while len(answers) < len(requests):
            message = self.receive()
            if message["type"] == "control_response":
                answers[message["response"]["request_id"]] = message["response"]
        return [answers[it]["response"] for it in numbers]

    def hook(self, event, more):
        ids = [it for matcher in self.hooks.get(event, []) for it in matcher["hookCallbackIds"]]
        about = {"hook_event_name": event, "tool_use_id": CALL, **more}
        requests = [{"subtype": "hook_callback", "callback_id": it, "tool_use_id": CALL, "input": about} for it in ids]
        return [it.get("hookSpecificOutput", {}) for it in self.ask_all(requests)]

    def mcp(self, server, method, params, **more):
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        return self.ask_all([{"subtype": "mcp_message", "server_name": server, "message": message}])[0]["mcp_response"]


class Transcript:
    """The session, in the folder in which the SDK looks for it."""

    def __init__(self, session):
        self.session = session
        self.path = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / "stories" / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.entries = [json.loads(it) for it in self.path.read_text().splitlines()] if self.path.exists() else []

    def add(self, role, content):
        parent = self.entries[-1]["uuid"] if self.entries else None
        entry = {"type": role, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": self.session}
        self.entries.append(entry | {"message": {"role": role, "content": content}})
        with self.path.open("a") as file:
            file.write(json.dumps(self.entries[-1]) + "\n")


def decide(connection, call):
    """Returns the strictest answer of the hooks, with its reason."""
    answers = connection.hook("PreToolUse", call)
    if not answers and "--allowedTools" in sys.argv:
        allowed = sys.argv[sys.argv.index("--allowedTools") + 1].split(",")
        return ("allow", None) if call["tool_name"] in allowed else ("deny", "the tool is not allowed")
    for decision in STRICTEST_FIRST:
        for answer in answers:
            if answer.get("permissionDecision") == decision:
                return decision, answer.get("permissionDecisionReason")
    return "deny", "no hook has answered"


def permit(connection, name, arguments):
    ask = {"subtype": "can_use_tool", "tool_name": name, "input": arguments, "tool_use_id": CALL}
    answer = connection.ask_all([ask])[0]
    return answer["behavior"], answer.get("message")


def run(connection, call):
    _, server, tool = call["tool_name"].split("__")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "cli", "version": "1"}}
    connection.mcp(server, "initialize", client, id=1)
    connection.mcp(server, "notifications/initialized", {})
    result = connection.mcp(server, "tools/call", {"name": tool, "arguments": call["tool_input"]}, id=2)["result"]
    event = "PostToolUseFailure" if result.get("isError") else "PostToolUse"
    connection.hook(event, call | {"tool_response": result})
    return result["content"][0]["text"]


def option(name):
    return next((it.removeprefix(f"{name}=") for it in sys.argv if it.startswith(f"{name}=")), None)


def main():
    session = option("--resume") or option("--session-id")
    connection, transcript = Connection(), Transcript(session)
    while connection.hooks is None:
        connection.receive()
    if not transcript.entries:
        while not connection.prompts:
            connection.receive()
        transcript.add("user", connection.prompts[0])
        (asked,) = json.loads(connection.prompts[0])
        call = {"type": "tool_use", "id": CALL, "name": f"mcp__crm__{asked['tool']}", "input": asked["arguments"]}
        transcript.add("assistant", [{"type": "text", "text": "The order is late."}, call])
    call = transcript.entries[1]["message"]["content"][1]
    about = {"session_id": session, "tool_name": call["name"], "tool_input": call["input"]}
    decision, reason = decide(connection, about)
    end = {"type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False}
    end |= {"num_turns": 1, "session_id": session}
    if decision == "defer":
        connection.send(end | {"stop_reason": "tool_deferred"})
        return
    if decision == "ask":
        decision, reason = permit(connection, call["name"], call["input"])
    text = run(connection, about) if decision == "allow" else reason
    transcript.add("user", [{"type": "tool_result", "tool_use_id": CALL, "content": text}])
    transcript.add("assistant", [{"type": "text", "text": text}])
    connection.send(end | {"stop_reason": "end_turn", "result": text})


main()
