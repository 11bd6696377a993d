#!/usr/bin/env python3
"""Decodes what examples/traces.cpp exports, by the field numbers that OTLP publishes.

    otlp_test.py --program FILE

The reader of this file always decodes. With the Python package opentelemetry-proto, its definitions
decode the same bytes in addition.
"""

import argparse
import base64
import gzip
import http.client
import http.server
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import types

SECONDS_MAX = 30
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    PUBLISHED = {"/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
                 "/v1/logs": logs_service_pb2.ExportLogsServiceRequest}
except ImportError:
    PUBLISHED = {}

# Fields by number: name and type. A list is a repeated message. The numbers are those of
# opentelemetry-proto 1.5: collector/{trace,logs}/v1, trace/v1, logs/v1, resource/v1, common/v1.
ANY_VALUE = {1: ("string_value", "string"), 2: ("bool_value", "bool"), 3: ("int_value", "int64"),
             4: ("double_value", "double")}
KEY_VALUE = {1: ("key", "string"), 2: ("value", ANY_VALUE)}
SCOPE = {1: ("name", "string"), 2: ("version", "string")}
RESOURCE = {1: ("attributes", [KEY_VALUE])}
EVENT = {1: ("time_unix_nano", "fixed64"), 2: ("name", "string"), 3: ("attributes", [KEY_VALUE]),
         4: ("dropped_attributes_count", "uint32")}
STATUS = {2: ("message", "string"), 3: ("code", "enum")}
SPAN = {1: ("trace_id", "bytes"), 2: ("span_id", "bytes"), 3: ("trace_state", "string"),
        4: ("parent_span_id", "bytes"), 5: ("name", "string"), 6: ("kind", "enum"),
        7: ("start_time_unix_nano", "fixed64"), 8: ("end_time_unix_nano", "fixed64"),
        9: ("attributes", [KEY_VALUE]), 10: ("dropped_attributes_count", "uint32"),
        11: ("events", [EVENT]), 12: ("dropped_events_count", "uint32"), 15: ("status", STATUS),
        16: ("flags", "fixed32")}
RECORD = {1: ("time_unix_nano", "fixed64"), 2: ("severity_number", "enum"),
          3: ("severity_text", "string"), 5: ("body", ANY_VALUE), 6: ("attributes", [KEY_VALUE]),
          7: ("dropped_attributes_count", "uint32"), 9: ("trace_id", "bytes"),
          10: ("span_id", "bytes"), 11: ("observed_time_unix_nano", "fixed64")}
REQUESTS = {
    "/v1/traces": {1: ("resource_spans", [{1: ("resource", RESOURCE), 2: ("scope_spans", [
        {1: ("scope", SCOPE), 2: ("spans", [SPAN])}])}])},
    "/v1/logs": {1: ("resource_logs", [{1: ("resource", RESOURCE), 2: ("scope_logs", [
        {1: ("scope", SCOPE), 2: ("log_records", [RECORD])}])}])}}
WIRE_TYPES = {"fixed64": 1, "double": 1, "fixed32": 5, "string": 2, "bytes": 2}  # others: 0
DEFAULTS = {"string": "", "bytes": b"", "bool": False, "double": 0.0}  # others: 0


def empty(schema):
    """A message without fields. `present` has the names of those that it was given."""
    made = types.SimpleNamespace(present=[])
    for name, kind in schema.values():
        if isinstance(kind, list):
            value = []
        else:
            value = None if isinstance(kind, dict) else DEFAULTS.get(kind, 0)
        setattr(made, name, value)
    return made


def store(message, name, kind, value):
    message.present.append(name)
    if isinstance(kind, list):
        getattr(message, name).append(value)
    else:
        setattr(message, name, value)


def varint(data, at):
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise AssertionError("a varint of more than 10 bytes")


def read_protobuf(schema, data):
    """Reads a message of Protocol Buffers. It accepts known fields in ascending order only."""
    message, at, last = empty(schema), 0, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        assert number in schema, f"unknown field {number}"
        assert number >= last, f"field {number} after {last}"
        last = number
        name, kind = schema[number]
        expected = WIRE_TYPES.get(kind, 0) if isinstance(kind, str) else 2
        assert wire == expected, f"{name}: wire type {wire}"
        if wire == 0:
            value, at = varint(data, at)
            if kind == "int64" and value >> 63:
                value -= 1 << 64
            value = bool(value) if kind == "bool" else value
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, f"{name} is cut off"
            if kind == "string":
                value = value.decode("utf-8")
            elif kind != "bytes":
                value = read_protobuf(kind[0] if isinstance(kind, list) else kind, value)
        else:
            size = 8 if wire == 1 else 4
            form = {"double": "<d", "fixed64": "<Q", "fixed32": "<I"}[kind]
            (value,), at = struct.unpack(form, data[at:at + size]), at + size
        store(message, name, kind, value)
    return message


def read_json(schema, value):
    """Reads a message of OTLP/JSON: names in camelCase, ids in hexadecimal, numbers of 64 bits as
    strings, enumerators as numbers."""
    message = empty(schema)
    fields = {re.sub(r"_(\w)", lambda found: found[1].upper(), name): (name, kind)
              for name, kind in schema.values()}
    for key, each in value.items():
        assert key in fields, f"unknown member {key}"
        name, kind = fields[key]
        if isinstance(kind, list):
            for item in each:
                store(message, name, kind, read_json(kind[0], item))
            continue
        if isinstance(kind, dict):
            each = read_json(kind, each)
        elif kind == "bytes":
            assert re.fullmatch(r"([0-9a-f]{16}){1,2}", each), f"{key}: {each}"
            each = bytes.fromhex(each)
        elif kind in ("int64", "fixed64"):
            assert isinstance(each, str), f"{key}: {each!r}"
            each = int(each)
        else:
            wanted = {"string": str, "bool": bool, "double": (int, float, str)}.get(kind, int)
            assert isinstance(each, wanted), f"{key}: {each!r}"
        store(message, name, kind, each)
    return message


class Collector(http.server.ThreadingHTTPServer):
    """A collector that keeps the requests of each path."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.received = []
        self.compressed = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            self.server.compressed += 1
            body = gzip.decompress(body)
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
    """Returns the request as this file reads it, and as the published definitions do."""
    is_json = media_type == "application/json"
    assert is_json or media_type == "application/x-protobuf", media_type
    schema = REQUESTS[path]
    messages = [read_json(schema, json.loads(body)) if is_json else read_protobuf(schema, body)]
    if path not in PUBLISHED:
        return messages
    message = PUBLISHED[path]()
    if is_json:
        json_format.ParseDict(ids_to_base64(json.loads(body)), message)
    else:
        message.ParseFromString(body)
        # The library writes fields in the order of their numbers, as the exporter does.
        assert message.SerializeToString(deterministic=True) == body, "not the library's bytes"
    return messages + [message]


def value_of(any_value):
    if isinstance(any_value, types.SimpleNamespace):
        (name,) = any_value.present
        return getattr(any_value, name)
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(owner):
    return {each.key: value_of(each.value) for each in owner.attributes}


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, expected {wanted!r}")


def run(program, protocol, compression):
    collector = Collector()
    environment = dict(os.environ, OTEL_SERVICE_NAME="shop", OTEL_BSP_SCHEDULE_DELAY="200",
                       OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                       OTEL_EXPORTER_OTLP_COMPRESSION=compression,
                       OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
                       OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}")
    # The service asks itself, so it must know its port before it listens.
    with socket.create_server(("127.0.0.1", 0)) as free:
        own_port = free.getsockname()[1]
    service = subprocess.Popen([program, "--address", "127.0.0.1", "--port", str(own_port),
                                "--cores", "1", "--no-pin"],
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        port, lines = None, []
        for line in service.stderr:
            lines.append(line)
            if found := re.search(r"listening on \S*:(\d+)$", line.strip()):
                port = int(found[1])
                break
        assert port, "the service does not listen"
        threading.Thread(target=lambda: lines.extend(service.stderr), daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
        connection.request("GET", "/buy/tea", headers={
            "Host": f"127.0.0.1:{collector.server_port}",  # no request goes there
            "traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=1",
            "User-Agent": b"b\xffd".decode("latin-1")})
        response = connection.getresponse()
        expect(response.read(), b"tea: 250\n", "answer")
        connection.close()
        end = time.monotonic() + SECONDS_MAX  # for the thread that writes logs, and a batch
        while time.monotonic() < end and not (
                collector.received and any(f"trace_id={TRACE}" in line for line in list(lines))):
            time.sleep(0.02)
        service.send_signal(signal.SIGTERM)
        expect(service.wait(SECONDS_MAX), 0, "exit status")
    finally:
        service.kill()
        collector.shutdown()
    expect(any(f"trace_id={TRACE}" in line for line in lines), True, "ids in the log")
    refused = any("OTEL_EXPORTER_OTLP_COMPRESSION" in line for line in lines)
    expected = len(collector.received) if compression == "gzip" and not refused else 0
    expect(collector.compressed, expected, "compressed requests")
    decoded = [(path, decode(path, media_type, body))
               for path, media_type, body in collector.received]
    readers = min(len(messages) for _, messages in decoded)
    return [[(path, messages[reader]) for path, messages in decoded] for reader in range(readers)]


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
    for protocol, compression in (("http/protobuf", "none"), ("http/json", "gzip"),
                                  ("http/protobuf", "gzip")):
        readings = run(program, protocol, compression)
        for messages in readings:
            check(messages)
        print(f"{protocol}, {compression}: {len(readings[0])} requests decoded by "
              f"{len(readings)} of 2 readers")


main()
