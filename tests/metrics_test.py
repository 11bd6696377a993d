#!/usr/bin/env python3
"""Checks the page of metrics of an example with the guide, promtool, Prometheus and protobuf.

    metrics_test.py --example FILE

A check whose program is missing is skipped: promtool and prometheus are in the package prometheus,
the library is in python3-protobuf. ./dev does not install the former, because it starts a server.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

SKIPPED = 77
SECONDS_MAX = 60
LISTENING = re.compile(r"listening on \S*:(\d+)$")
PROTOBUF = ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
            "encoding=delimited")
ROUTES = {"/orders/1": 200, "/orders/x": 404, "/none": 404}
ORDERS = 5


class Failure(Exception):
    pass


def expect(right, what):
    if not right:
        raise Failure(what)


class Example:
    """The example on a port of the kernel's choice."""

    def __init__(self, path):
        self.process = subprocess.Popen([path, "--port", "0", "--cores", "2"],
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = LISTENING.search(line.rstrip())
            if found:
                self.port = int(found[1])
                return
        raise Failure("the example does not listen")

    def ask(self, path, method="GET", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS_MAX)


def make_traffic(example):
    for path, status in ROUTES.items():
        for _ in range(3):
            expect(example.ask(path)[0] == status, f"{path}: another status")
    for number in range(ORDERS):
        order = json.dumps({"product": "tea" if number else "a \"b\"\\\n", "count": number})
        status = example.ask("/orders", "POST", order, {"Content-Type": "application/json"})[0]
        expect(status == 200, f"an order: status {status}")


def check_promtool(example, _):
    """The text format is clean for promtool."""
    text = example.ask("/metrics")[2]
    found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                           timeout=SECONDS_MAX, check=False)
    report = (found.stdout + found.stderr).decode()
    expect(found.returncode == 0 and not report.strip(), f"promtool:\n{report}")


def check_guide(example, _):
    """The guide lists each metric of Weir on the page, with its kind."""
    guide = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "metrics.md"
    listed = dict(re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|",
                             guide.read_text(encoding="utf-8"), re.MULTILINE))
    expect(len(listed) > 50, "the tables of the guide")
    text = example.ask("/metrics")[2].decode()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        if not name.startswith("shop_"):
            expect(listed.get(name) == kind, f"{name}, a {kind}, is not in the guide")


def prometheus_classes():
    """Returns the message MetricFamily of io.prometheus.client, as far as Weir writes it."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    field_types = {"string": 9, "double": 1, "uint64": 4, "sint32": 17, "sint64": 18, "uint32": 13,
                   "enum": 14}
    messages = {
        "LabelPair": [(1, "name", "string"), (2, "value", "string")],
        "Gauge": [(1, "value", "double")],
        "Counter": [(1, "value", "double")],
        "Bucket": [(1, "cumulative_count", "uint64"), (2, "upper_bound", "double")],
        "BucketSpan": [(1, "offset", "sint32"), (2, "length", "uint32")],
        "Histogram": [(1, "sample_count", "uint64"), (2, "sample_sum", "double"),
                      (3, "bucket", "*Bucket"), (5, "schema", "sint32"),
                      (6, "zero_threshold", "double"), (7, "zero_count", "uint64"),
                      (12, "positive_span", "*BucketSpan"), (13, "positive_delta", "*sint64")],
        "Metric": [(1, "label", "*LabelPair"), (2, "gauge", "Gauge"), (3, "counter", "Counter"),
                   (7, "histogram", "Histogram")],
        "MetricFamily": [(1, "name", "string"), (2, "help", "string"), (3, "type", "enum"),
                         (4, "metric", "*Metric")],
    }
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="io.prometheus.client",
                                              syntax="proto2")
    kinds = file.enum_type.add(name="MetricType")
    for number, name in enumerate(["COUNTER", "GAUGE", "SUMMARY", "UNTYPED", "HISTOGRAM"]):
        kinds.value.add(name=name, number=number)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            repeated = kind.startswith("*")
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            kind = kind.removeprefix("*")
            if kind in field_types:
                added.type = field_types[kind]
                if kind == "enum":
                    added.type_name = ".io.prometheus.client.MetricType"
            else:
                added.type = 11
                added.type_name = ".io.prometheus.client." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("io.prometheus.client.MetricFamily")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


def families_of(data):
    made = prometheus_classes()
    at, families = 0, {}
    while at < len(data):
        size, shift = 0, 0
        while True:
            part = data[at]
            at += 1
            size |= (part & 127) << shift
            shift += 7
            if part < 128:
                break
        family = made()
        family.ParseFromString(data[at:at + size])
        expect(family.name not in families, f"{family.name} twice")
        families[family.name] = family
        at += size
    return families


def check_protobuf(example, _):
    """The library of Protocol Buffers reads the messages, with native histograms."""
    status, kind, data = example.ask("/metrics", headers={"Accept": PROTOBUF})
    expect(status == 200 and kind.startswith("application/vnd.google.protobuf"), kind)
    families = families_of(data)
    orders = families["shop_orders_total"]
    expect(orders.type == 0, "the type of a counter")
    values = {each.label[0].value: each.counter.value for each in orders.metric}
    expect(values == {"tea": ORDERS - 1, "a \"b\"\\\n": 1}, f"orders: {values}")
    payments = families["shop_payment_duration_seconds"].metric[0].histogram
    expect(payments.sample_count == ORDERS, f"payments: {payments}")
    expect(payments.schema == 3, "the schema")
    total, delta, count = payments.zero_count, iter(payments.positive_delta), 0
    key = 0
    for span in payments.positive_span:
        key += span.offset
        for _ in range(span.length):
            count += next(delta)
            total += count
            # A payment takes 3 ms or longer, so no bucket ends before.
            expect(count == 0 or 2 ** (key / 8) >= 0.003, f"bucket {key} has {count}")
            key += 1
    expect(total == ORDERS and next(delta, None) is None, f"{total} values in native buckets")
    below = [each.cumulative_count for each in payments.bucket]
    expect(len(below) == 14 and below == sorted(below), f"explicit buckets: {below}")


def query(port, text):
    url = f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(text)
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        result = json.load(answer)["data"]["result"]
    return [(each["metric"], float(each["value"][1])) for each in result]


def free_port():
    import socket
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scrape(example, folder, flags, queries):
    """Runs Prometheus until it has scraped the example, and checks the answers to queries."""
    port = free_port()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: shop\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{example.port}']\n")
    with open(folder / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
             *flags],
            stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            expect(server.poll() is None, "prometheus ended: " +
                   (folder / "log").read_text(encoding="utf-8")[-2000:])
            try:
                if query(port, "up") and query(port, "up")[0][1] == 1:
                    break
            except OSError:
                pass
            if time.monotonic() > deadline:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/targets") as targets:
                    raise Failure(f"no successful scrape: {targets.read().decode()[:2000]}")
            time.sleep(0.2)
        for text, right in queries:
            found = query(port, text)
            expect(right(found), f"{text}: {found}")
    finally:
        server.terminate()
        server.wait(SECONDS_MAX)


def check_prometheus(example, folder):
    """Prometheus scrapes OpenMetrics, and its answers are the numbers of the traffic."""
    scrape(example, folder, [], [
        ("shop_orders_total", lambda found: sum(value for _, value in found) == ORDERS),
        ("shop_payment_duration_seconds_count", lambda found: found[0][1] == ORDERS),
        ('http_server_request_duration_seconds_count{http_route="/orders/{number}",'
         'http_response_status_code="200"}', lambda found: [value for _, value in found] == [3]),
        ('sum by (http_response_status_code) (http_server_request_duration_seconds_count'
         '{http_route="/orders"})', lambda found: [value for _, value in found] == [ORDERS]),
        ('histogram_quantile(0.5, shop_payment_duration_seconds_bucket)',
         lambda found: 0 < found[0][1] < 0.1),
        ("count(weir_core_run_time_seconds_total)", lambda found: found[0][1] == 2),
        ("http_server_active_requests", lambda found: found[0][1] == 1),
    ])


def check_native(example, folder):
    """Prometheus scrapes native histograms."""
    (folder / "native").mkdir()
    scrape(example, folder / "native", ["--enable-feature=native-histograms"], [
        ("histogram_count(shop_payment_duration_seconds)", lambda found: found[0][1] == ORDERS),
        ("histogram_quantile(0.5, shop_payment_duration_seconds)",
         lambda found: 0.003 * 0.91 < found[0][1] < 0.1),
    ])


CHECKS = [("python3", check_guide), ("promtool", check_promtool),
          ("google.protobuf", check_protobuf), ("prometheus", check_prometheus),
          ("prometheus", check_native)]


def is_there(needed):
    if needed == "google.protobuf":
        try:
            import google.protobuf  # noqa: F401
        except ImportError:
            return False
        return True
    return shutil.which(needed) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", required=True, type=pathlib.Path)
    options = parser.parse_args()
    skipped, failed = 0, 0
    example = Example(options.example)
    try:
        make_traffic(example)
        for needed, check in CHECKS:
            if not is_there(needed):
                print(f"skipped, {needed} is missing: {check.__doc__}")
                skipped += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check(example, pathlib.Path(folder))
                    print(f"passed: {check.__doc__}")
                except Failure as failure:
                    failed += 1
                    print(f"FAILED: {check.__doc__}\n{failure}")
    finally:
        example.stop()
    if failed:
        return 1
    return SKIPPED if skipped else 0


if __name__ == "__main__":
    for name in ("http_proxy", "HTTP_PROXY"):
        os.environ.pop(name, None)
    sys.exit(main())
