"""Reads a connection's bytes exactly by RFC 9112, 9110 and 3986, in the strict profile.

It follows the grammar, independently of Weir's parser, so that both cannot be wrong in the same
way. This file uses whole messages and regular expressions; Weir uses a state machine.
"""

import dataclasses
import ipaddress
import re

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([^ ]+) HTTP/([0-9])\.([0-9])")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*(.*?)[ \t]*", re.DOTALL)
VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
ESCAPE = rb"%[0-9A-Fa-f]{2}"
# Browsers send some characters that RFC 3986 does not allow (WHATWG URL, percent-encode sets).
RAW = rb"\[\]{}|^`"
PATH = re.compile(rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/" + RAW + rb"]|" + ESCAPE + rb")*")
QUERY = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=:@/?%\\" + RAW + rb"]*")
HOST_NAME = re.compile(rb"(?:[A-Za-z0-9\-._~!$&'()*+;=]|" + ESCAPE + rb")+")
HOST_ESCAPED = rb"-._~!$&'()*+;=0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
AUTHORITY = re.compile(rb"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
FUTURE_ADDRESS = re.compile(rb"[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+;=:]+")
QUOTED = rb'"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
EXTENSION = (rb"[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb"|" + QUOTED + rb"))?")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]+)((?:" + EXTENSION + rb")*)")

METHODS = {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"}
FORBIDDEN_TRAILERS = {b"content-length", b"transfer-encoding", b"host", b"connection", b"upgrade",
                      b"expect", b"te", b"trailer"}

REQUEST_LINE_MAX = 8 * 1024
FIELDS_BYTES_MAX = 64 * 1024
FIELDS_MAX = 100
EMPTY_LINES_MAX = 4
BODY_MAX = 1024 * 1024
CHUNK_LINE_MAX = 1024
EXTENSIONS_MAX = 16 * 1024
SIZE_DIGITS_MAX = 16


class Refused(Exception):
    """A request that breaks the rule of this number."""

    def __init__(self, rule, reason):
        super().__init__(f"rule {rule}: {reason}")
        self.rule = rule
        self.reason = reason


class Incomplete(Exception):
    """A valid start of a request, whose rest is missing."""


@dataclasses.dataclass(frozen=True)
class Request:
    method: str
    target: str
    body: bytes


@dataclasses.dataclass
class Reading:
    """All requests of a connection, and the state after them."""
    requests: list
    end: str  # "all", "incomplete", "closed" (by a request), "refused"
    rule: int = 0
    reason: str = ""


def read(data):
    """Returns the Reading of the bytes of one connection."""
    requests = []
    position = 0
    while True:
        try:
            request, position, keep = read_request(data, position)
        except Refused as refused:
            return Reading(requests, "refused", refused.rule, refused.reason)
        except Incomplete:
            return Reading(requests, "incomplete")
        if request is None:
            return Reading(requests, "all")
        requests.append(request)
        if not keep:
            return Reading(requests, "closed")


def read_request(data, position):
    position = skip_empty_lines(data, position)
    if position == len(data):
        return None, position, True
    lines, position = read_lines(data, position, "head")
    method, target, minor = read_request_line(lines[0])
    fields_bytes = sum(len(line) + 2 for line in lines[1:]) + 2
    if len(lines) - 1 > FIELDS_MAX or fields_bytes > FIELDS_BYTES_MAX:
        raise Refused(15, "too many or too long fields")
    fields = [read_field(line) for line in lines[1:]]
    check_target(method, target)
    check_hosts(values(fields, b"host"), minor)
    keep = keeps_alive(values(fields, b"connection"), minor)
    length, chunked = read_framing(fields, minor)
    check_expectations(values(fields, b"expect"), minor)
    if chunked:
        body, position = read_chunks(data, position)
    else:
        if length > BODY_MAX:
            raise Refused(15, "body too large")
        if len(data) - position < length:
            raise Incomplete
        body = data[position : position + length]
        position += length
    return Request(method.decode("latin-1"), target.decode("latin-1"), body), position, keep


def skip_empty_lines(data, position):
    count = 0
    while data[position : position + 2] == b"\r\n":
        position += 2
        count += 1
        if count > EMPTY_LINES_MAX:
            raise Refused(1, "too many empty lines")
    rest = data[position : position + 2]
    if rest == b"\r":
        raise Incomplete
    if rest[:1] in (b"\r", b"\n"):
        raise Refused(1, "a bare CR or LF before a request")
    return position


def read_lines(data, position, what):
    """Returns the lines before an empty line, and the end of the empty line."""
    end = data.find(b"\r\n\r\n", position)
    text = data[position:] if end < 0 else data[position:end]
    lines = text.split(b"\r\n")
    for index, line in enumerate(lines):
        last_of_cut = end < 0 and index == len(lines) - 1
        bare = line[:-1] if last_of_cut and line.endswith(b"\r") else line
        if b"\r" in bare or b"\n" in bare:
            raise Refused(1, f"a bare CR or LF in a {what}")
    if end < 0:
        if len(lines[0]) > REQUEST_LINE_MAX or len(text) - len(lines[0]) > FIELDS_BYTES_MAX:
            raise Refused(15, f"a {what} without an end")
        raise Incomplete
    return lines, end + 4


def read_request_line(line):
    if len(line) > REQUEST_LINE_MAX:
        raise Refused(15, "request line too long")
    match = REQUEST_LINE.fullmatch(line)
    if not match:
        if not re.match(TOKEN + rb" ", line):
            raise Refused(3, "no method")
        raise Refused(2, "no request line")
    method, target, major, minor = match.groups()
    if major != b"1":
        raise Refused(2, "another major version")
    return method, target, int(minor)


def read_field(line):
    if line[:1] in (b" ", b"\t"):
        raise Refused(6, "a folded line")
    match = FIELD.fullmatch(line)
    if not match:
        raise Refused(6, "no field")
    name, value = match.groups()
    if not VALUE.fullmatch(value):
        raise Refused(6, "a control in a value")
    return name.lower(), value


def values(fields, name):
    return [value for each, value in fields if each == name]


def check_target(method, target):
    if method == b"CONNECT":
        if not is_authority(target, port_needed=True):
            raise Refused(4, "no authority for CONNECT")
    elif target.startswith(b"/"):
        check_path_and_query(target)
    elif target == b"*":
        if method != b"OPTIONS":
            raise Refused(4, "an asterisk")
    else:
        match = re.fullmatch(rb"(?i:https?)://([^/?#]*)(.*)", target, re.DOTALL)
        if not match:
            raise Refused(4, "another form of target")
        if not is_authority(match.group(1)):
            raise Refused(4, "no authority in the target")
        check_path_and_query(match.group(2))


def check_path_and_query(text):
    path, _, query = text.partition(b"?")
    if not PATH.fullmatch(path) or not QUERY.fullmatch(query):
        raise Refused(4, "a character or an escape that a target does not allow")
    if b"%00" in path:
        raise Refused(4, "an escaped NUL")
    for segment in path.split(b"/"):
        if re.sub(rb"(?i:%2e)", b".", segment) in (b".", b".."):
            raise Refused(4, "a dot segment")


def is_authority(text, port_needed=False):
    match = AUTHORITY.fullmatch(text)
    if not match:
        return False
    host, port = match.groups()
    if port and (len(port.lstrip(b"0")) > 5 or int(port[-6:]) > 65535):
        return False
    if port_needed and not port:
        return False
    if host.startswith(b"["):
        return is_address(host[1:-1])
    if not HOST_NAME.fullmatch(host):
        return False
    hidden = [int(escape[1:], 16) for escape in re.findall(ESCAPE, host)]
    return all(byte >= 0x80 or byte in HOST_ESCAPED for byte in hidden)


def is_address(text):
    if FUTURE_ADDRESS.fullmatch(text):
        return True
    if not re.fullmatch(rb"[0-9A-Fa-f:.]+", text):
        return False  # no zones
    try:
        ipaddress.IPv6Address(text.decode())
    except ValueError:
        return False
    return True


def check_hosts(hosts, minor):
    if len(hosts) > 1:
        raise Refused(5, "two Hosts")
    if not hosts and minor > 0:
        raise Refused(5, "no Host")
    if hosts and not is_authority(hosts[0]):
        raise Refused(5, "a bad Host")


def members(text):
    return [member.strip(b" \t") for member in text.split(b",") if member.strip(b" \t")]


def keeps_alive(connections, minor):
    options = set()
    for text in connections:
        for member in members(text):
            if not re.fullmatch(TOKEN, member):
                raise Refused(10, "Connection is no list of tokens")
            options.add(member.lower())
    return b"close" not in options and (minor > 0 or b"keep-alive" in options)


def read_framing(fields, minor):
    """Returns (length of the body, true if it is chunked)."""
    lengths = values(fields, b"content-length")
    codings = values(fields, b"transfer-encoding")
    if len(lengths) > 1:
        raise Refused(7, "two lengths")
    length = 0
    if lengths:
        digits = lengths[0].lstrip(b"0") or b"0"
        if not re.fullmatch(rb"[0-9]+", lengths[0]) or len(digits) > 19:
            raise Refused(7, "a bad length")
        length = int(digits)
        if length >= 1 << 63:
            raise Refused(7, "a length beyond 63 bits")
    if codings:
        if len(codings) > 1 or codings[0].lower() != b"chunked" or minor == 0:
            raise Refused(8, "a Transfer-Encoding that is not one chunked, in 1.1")
        if lengths:
            raise Refused(8, "both lengths")
    return length, bool(codings)


def check_expectations(expectations, minor):
    if minor == 0:
        return
    for text in expectations:
        if any(member.lower() != b"100-continue" for member in members(text)):
            raise Refused(11, "another expectation")


def read_chunks(data, position):
    body = b""
    extensions = 0
    while True:
        line, position = read_chunk_line(data, position)
        match = CHUNK_LINE.fullmatch(line)
        if not match:
            raise Refused(9, "no chunk size or a bad extension")
        digits, extension = match.groups()
        extensions += len(extension)
        if len(digits) > SIZE_DIGITS_MAX or int(digits, 16) >= 1 << 63:
            raise Refused(9, "a chunk size too large")
        if len(line) > CHUNK_LINE_MAX or extensions > EXTENSIONS_MAX:
            raise Refused(15, "too long extensions")
        size = int(digits, 16)
        if size == 0:
            return body, read_trailers(data, position)
        if len(body) + size > BODY_MAX and len(data) - position >= size:
            raise Refused(15, "body too large")
        after = data[position + size : position + size + 2]
        if not b"\r\n".startswith(after):
            raise Refused(9, "no CRLF after a chunk")
        if len(after) < 2:
            raise Incomplete
        body += data[position : position + size]
        position += size + 2


def read_chunk_line(data, position):
    end = data.find(b"\r\n", position)
    line = data[position:] if end < 0 else data[position:end]
    if end < 0 and line.endswith(b"\r"):
        line = line[:-1]
    if b"\r" in line or b"\n" in line:
        raise Refused(1, "a bare CR or LF in a chunk's line")
    if end < 0:
        if line and not re.match(rb"[0-9A-Fa-f]+([ \t;]|$)", line):
            raise Refused(9, "no chunk size")
        if len(line) > CHUNK_LINE_MAX or re.match(rb"[0-9A-Fa-f]{17}", line):
            raise Refused(9, "a chunk's line without an end")
        raise Incomplete
    return line, end + 2


def read_trailers(data, position):
    if data[position : position + 2] == b"\r\n":
        return position + 2
    if len(data) - position < 2 and b"\r\n".startswith(data[position:]):
        raise Incomplete
    lines, position = read_lines(data, position, "trailer")
    if len(lines) > FIELDS_MAX or sum(len(line) for line in lines) > FIELDS_BYTES_MAX:
        raise Refused(15, "too many or too long trailers")
    for line in lines:
        name, _ = read_field(line)
        if name in FORBIDDEN_TRAILERS:
            raise Refused(9, "a trailer that would change framing")
    return position
