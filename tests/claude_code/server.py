#!/usr/bin/env python3
"""An MCP server with one tool, which finds an order."""

import json
import sys

TOOL = {"name": "look_up", "description": "Finds an order", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    version = message.get("params", {}).get("protocolVersion")
    results = {
        "initialize": {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "crm", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "Nordwind"}]},
    }
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
        print(json.dumps(answer), flush=True)
