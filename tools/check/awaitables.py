"""Checks that each awaitable documents its cancellation, and that a test cancels it.

An awaitable is a public function in a header of a waiting floor that returns a task or another type
with co_await. A "Cancel:" line is in its doc comment, in the comment of the returned type, or in an
earlier comment of the same paragraph. tests/cancel_sweep*_test.cpp has a case with its name, or
NOT_SWEPT names the reason or the other test.
"""

import re

import cxx_text
import floors

WAITING_FLOORS = {"task", "runtime", "net", "event", "tls", "config", "log", "http", "doctor",
                  "web", "telemetry", "app", "admin"}
SWEEP = re.compile(r"tests/cancel_sweep\w*_test\.cpp$")
# {start of a name, as a regex: the reason}
NOT_SWEPT = {
    "this_context": "it does not wait",
    "yield": "it returns in the next round, also if cancelled",
    "as_task": "its argument has its own case",
    "Scope::children_finished": "with_scope() ends with it and has a case",
    "http::LiveRoutes::(head|post|put|patch|del|options|add)": "equal to get(), which has a case",
    "http::(serve|accept_connections|open_listener)": "they share the code of listen_and_serve()",
    "http::(serve_connection|reject_connection)": "connection_faults_test.cpp, each turn",
    "http::(BodySource|Call|Carrier|Exchange|RequestBody|ResponseBody)::":
        "connection_faults_test.cpp",
    "http::InterimSender::": "it is what Request::send_interim() does, which has a case",
    "http::(Connection|ConnectionIo|H1Carrier|H1Connection)::": "connection_faults_test.cpp",
    "http::(H2Connection|H2Carrier)::": "h2_connection_faults_test.cpp, each turn",
    "http::ResponseSink::": "it is what BodySink::write() of a response does, which has a case",
    "http::(Handler|Middleware|RouteMatch)::": "they call user code: connection_faults_test.cpp",
    "http::(ServiceRouteSet|ServiceRouteRegistry|CoreHandler)::":
        "parts of an App: replacement_steps_test.cpp",
    "http::(SessionStore|MemorySessionStore)::":
        "the store in memory does not wait: memory_session_store_test.cpp",
    "http::Sessions::operator": "it is a store and a handler: sessions_test.cpp",
    "http::DecompressRequests::":
        "it calls user code, which reads a body as Request::body() does",
    "http::EventReader::": "it is ClientResponse::read(), which has a case, and a parser",
    "http::FileSite::": "it waits for PoolLane::run(), which has a case",
    "http::ReverseProxy::": "it is Client::send() and ClientResponse::read(), which have cases",
    "http::ClientSide::": "it is BodySource::read() and BodySink::write() with a limit of time",
    "http::ProxyCore::": "it waits for FairSlots: fair_slots_test.cpp",
    "http::Health::": "it calls user code: health_test.cpp",
    "AdminListener::serve": "it does what http::serve() does: admin_drain_test.cpp",
    "tcp::listen_through_drain": "it shares the code of listen()",
    "admin::": "they sleep and read counters: listener_test.cpp",
    "ProxyProtocol::": "it is Stream::read_into(), which has a case",
    "files::(read_some|write_all|sync)$": "parts of files::File",
    "telemetry::in_span": "it passes the cancellation on to its task: span_test.cpp",
    "telemetry::Tracer::export_spans": "exporter_world_test.cpp cancels it",
    "telemetry::Exporter::": "the task of Tracer::export_spans()",
    "doctor::Examination::": "it is files::read_file(), resolve() and connect(), which have cases",
    "dns::(SystemDnsConfig|DnsClient|SharedLookup)::":
        "parts of a Resolver: resolver_steps_test.cpp",
}

AWAITED = re.compile(r"\boperator co_await\b|\bawait_suspend\b")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\s+(?:\[\[.*?\]\]\s*)?(?:class\s+)?"
                   r"([\w:]*)")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
# A function's return type and its name.
PLAIN = re.compile(r"((?:\w+::)*\w+)(?:<.*>)?\s*&{0,2}\s+(operator|\w+)\s*$", re.DOTALL)
TRAILING = re.compile(r"\)\s*(?:const\s*)?(?:noexcept\s*)?->\s*((?:\w+::)*\w+)")
INTERNAL = {"detail", "inject"}  # namespaces
PARAGRAPH_ENDS = re.compile(r"^\s*$|^\s*\w+:$|^[^/]*\b(?:class|struct|namespace)\b.*\{$")
MACHINERY = re.compile(r"^await_|^get_return_object$|^final_suspend$|^yield_value$")


def declarations(code):
    """Yields (offset, names of the scopes around it, true if public, head) of each declaration at
    namespace or class level."""
    partner = cxx_text.brackets(code)
    scopes = []  # [end, name, access]
    start = offset = 0
    while offset < len(code):
        char = code[offset]
        if scopes and offset == scopes[-1][0]:
            scopes.pop()
            start = offset + 1
        elif char in "([":
            offset = partner[offset]
        elif char in ";{":
            labels = ACCESS.findall(code[start:offset])
            if labels and scopes:
                scopes[-1][2] = labels[-1]
            head = ACCESS.split(code[start:offset])[-1].lstrip()
            first = offset - len(head)
            opened = None
            if char == "{" and "(" not in head:
                opened = SCOPE.search(re.sub(r"<[^<>]*>", "", head))
            if opened and opened[1] != "enum":
                scopes.append([partner[offset], opened[2],
                               "private" if opened[1] == "class" else "public"])
            else:
                public = all(access == "public" for _, _, access in scopes)
                names = [name for _, written, _ in scopes for name in written.split("::") if name]
                yield first, names, public, head
                if char == "{":
                    offset = partner[offset]
            start = offset + 1
        offset += 1


def returned(head):
    """Returns (a function's return type without namespaces and arguments, its name), or None."""
    found = PLAIN.search(head[:head.index("(")]) if "(" in head else None
    if found is None or re.search(r"\b(using|friend|return)\b", head):
        return None
    trailing = TRAILING.search(head)
    written = trailing[1] if trailing else found[1]
    return written.split("::")[-1], found[2] + ("()" if found[2] == "operator" else "")


def headers(repository):
    for file in repository.cxx:
        if file.is_header and not file.is_fixture and floors.floor_of(file.path) in WAITING_FLOORS:
            yield file


def above(file, line, goes_on):
    """Returns the lines above a line (counted from 1) while `goes_on` is true for each."""
    first = line - 1
    while first > 0 and goes_on(file.lines[first - 1]):
        first -= 1
    return "\n".join(file.lines[first:line - 1])


def documents_cancel(file, line, type_name):
    paragraph = above(file, line, lambda each: not PARAGRAPH_ENDS.search(each))
    documented_type = re.compile(rf"^ *///.*\bCancel:.*\n(?: *///.*\n)*"
                                 rf" *(?:class|struct)\b[^;{{(]*\b{type_name}\b", re.MULTILINE)
    return re.search(r"///.*\bCancel:", paragraph) or documented_type.search(file.text)


def awaitables(repository):
    """Yields (file, line, name, true if documented) of each awaitable."""
    for file in headers(repository):
        found = list(declarations(file.code))
        types = {"Task"} | {scopes[-1] for _, scopes, _, head in found
                            if scopes and AWAITED.search(head)}
        for offset, scopes, public, head in found:
            result = returned(head) if public and not INTERNAL.intersection(scopes) else None
            if result is None or MACHINERY.search(result[1]):
                continue
            line = cxx_text.line_of(file.code, offset)
            doc = above(file, line, lambda each: each.lstrip().startswith("///"))
            if result[0] in types or "`co_await " in doc:
                name = "::".join([*scopes, result[1]]).removeprefix("weir::")
                fine = head.rstrip().endswith("override") or documents_cancel(file, line, result[0])
                yield file, line, name, fine


def check_awaitables(repository, report):
    sweeps = "\n".join(file.text for path, file in repository.files.items() if SWEEP.search(path))
    cases = re.findall(r'SweepCase\{\s*"([^"]*)"', sweeps)
    used = set()
    for file, line, name, documented in awaitables(repository):
        if not documented:
            report(file, line, "cancel", f"{name}: its comment lacks a Cancel: section")
        instead = [pattern for pattern in NOT_SWEPT if re.match(pattern, name)]
        used.update(instead)
        if not instead and not any(re.match(re.escape(name) + r"(?: |$)", case) for case in cases):
            report(file, line, "cancel", f"{name}: no case in tests/cancel_sweep*_test.cpp")
    own = repository.files.get("tools/check/awaitables.py")
    for pattern in NOT_SWEPT if own else ():
        if pattern not in used:
            report(own, 1, "cancel", f"NOT_SWEPT: no awaitable matches {pattern}")


CHECKS = [check_awaitables]
