#!/usr/bin/env python3
"""Decodes what examples/traces.cpp exports with the published definitions of OTLP.

    otlp_test.py --program FILE

The definitions come from the Python package opentelemetry-proto. Without it the test is skipped.
"""

import argparse
import base64
import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

SKIPPED = 77
SECONDS_MAX = 30
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
except ImportError as missing:
    print(f"skipped: {missing} (pip install opentelemetry-proto)")
    sys.exit(SKIPPED)

REQUESTS = {"/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
            "/v1/logs": logs_service_pb2.ExportLogsServiceRequest}


class Collector(http.server.ThreadingHTTPServer):
    """A collector that keeps the requests of each path."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.received = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ids_to_base64(value):
    """Turns OTLP/JSON into the JSON of Protocol Buffers, whose bytes are in base64."""
    if isinstance(value, list):
        return [ids_to_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, each in value.items():
        if key in ("traceId", "spanId", "parentSpanId"):
            assert re.fullmatch(r"[0-9a-f]*", each), each
            each = base64.b64encode(bytes.fromhex(each)).decode()
        out[key] = ids_to_base64(each)
    return out


def decode(path, media_type, body):
    message = REQUESTS[path]()
    if media_type == "application/json":
        json_format.ParseDict(ids_to_base64(json.loads(body)), message)
    else:
        assert media_type == "application/x-protobuf", media_type
        message.ParseFromString(body)
        # The library writes fields in the order of their numbers, as the exporter does.
        assert message.SerializeToString(deterministic=True) == body, "not the library's bytes"
    return message


def value_of(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(owner):
    return {each.key: value_of(each.value) for each in owner.attributes}


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, expected {wanted!r}")


def run(program, protocol):
    collector = Collector()
    environment = dict(os.environ, OTEL_SERVICE_NAME="shop", OTEL_BSP_SCHEDULE_DELAY="200",
                       OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                       OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
                       OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}")
    service = subprocess.Popen([program, "--address", "127.0.0.1", "--port", "0",
                                "--cores", "1", "--no-pin"],
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        port = None
        for line in service.stderr:
            if found := re.search(r"listening on \S*:(\d+)$", line.strip()):
                port = int(found[1])
                break
        assert port, "the service does not listen"
        lines = []
        threading.Thread(target=lambda: lines.extend(service.stderr), daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
        connection.request("GET", "/buy/tea", headers={
            "traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=1",
            "User-Agent": b"b\xffd".decode("latin-1")})
        response = connection.getresponse()
        expect(response.read(), b"tea: 250\n", "answer")
        connection.close()
        time.sleep(1)  # for the thread that writes logs, and a batch
        service.send_signal(signal.SIGTERM)
        expect(service.wait(SECONDS_MAX), 0, "exit status")
    finally:
        service.kill()
        collector.shutdown()
    expect(any(f"trace_id={TRACE}" in line for line in lines), True, "ids in the log")
    return [(path, decode(path, media_type, body)) for path, media_type, body in collector.received]


def check(messages):
    spans, logs = {}, []
    for path, message in messages:
        if path == "/v1/traces":
            for resource in message.resource_spans:
                facts = attributes(resource.resource)
                expect(facts["service.name"], "shop", "service")
                expect(facts["deployment.environment.name"], "test", "resource")
                for scope in resource.scope_spans:
                    expect(scope.scope.name, "weir", "scope")
                    spans.update({span.name: span for span in scope.spans})
        else:
            logs += [record for resource in message.resource_logs for scope in resource.scope_logs
                     for record in scope.log_records]
    expect(sorted(spans), ["GET", "GET /buy/{item}", "GET /stock/{item}", "look up", "price"],
           "spans")
    for span in spans.values():
        expect(span.trace_id.hex(), TRACE, "trace of " + span.name)
        expect(span.end_time_unix_nano >= span.start_time_unix_nano > 1.7e18, True, "times")
        expect(abs(span.start_time_unix_nano / 1e9 - time.time()) < 60, True, "clock")
    server, stock, call = spans["GET /buy/{item}"], spans["GET /stock/{item}"], spans["GET"]
    expect(server.parent_span_id.hex(), PARENT, "parent")
    expect(server.trace_state, "a=1", "tracestate")
    expect((server.kind, call.kind, spans["price"].kind), (2, 3, 1), "kinds")
    expect(server.flags, 0x301, "flags")
    expect(spans["price"].parent_span_id, server.span_id, "parent of price")
    expect(spans["look up"].parent_span_id, spans["price"].span_id, "parent of look up")
    expect(call.parent_span_id, server.span_id, "parent of the call")
    expect(stock.parent_span_id, call.span_id, "parent of the called request")
    facts = attributes(server)
    expect(facts["http.route"], "/buy/{item}", "route")
    expect(facts["http.response.status_code"], 200, "status")
    expect(facts["user_agent.original"], "b\ufffdd", "text that is no UTF-8")
    expect(attributes(stock)["shop.item"], "tea", "attribute of the handler")
    sold = [record for record in logs if record.body.string_value == "sold"]
    expect(len(sold), 1, "records")
    expect((sold[0].trace_id.hex(), sold[0].span_id), (TRACE, server.span_id), "ids of the record")
    expect(attributes(sold[0])["left"], "17", "field of the record")
    expect(sold[0].severity_number, 9, "severity")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    for protocol in ("http/protobuf", "http/json"):
        messages = run(program, protocol)
        check(messages)
        print(f"{protocol}: {len(messages)} requests decoded")


main()
