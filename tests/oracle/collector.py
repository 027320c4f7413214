"""A collector for the tests: prints its port, then each span that it is given as a line of JSON, read by OpenTelemetry's
own messages. It takes nothing from whoever does not know it."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def say(what):
    print(json.dumps(what), flush=True)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        known = self.headers["authorization"] == sys.argv[1] and self.path == "/v1/traces"
        self.send_response(200 if known else 401)
        self.send_header("content-length", "0")
        self.end_headers()
        if known:
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                service = {it.key: it.value.string_value for it in resource.resource.attributes}
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        told = MessageToDict(span)
                        attributes = {it["key"]: next(iter(it["value"].values())) for it in told.get("attributes", [])}
                        say({"service": service.get("service.name"), "name": span.name, "kind": told["kind"], "trace": span.trace_id.hex(),
                             "id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "attributes": attributes,
                             "failed": span.status.code == 2})

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
say({"port": server.server_port})
server.serve_forever()
