"""Makes cases by mutating known cases. The same seed makes the same cases."""

import json
import random

FILES = ("http1-cases.json", "http1-more.json", "http1-smuggling.json", "http1-found.json")
SENTINEL = b"GET /sentinel HTTP/1.1\r\nHost: a.test\r\n\r\n"
BYTES_MAX = 4096  # other tests send floods

# Bytes in which parsers are known to differ.
ODD = [b" ", b"\t", b"\r", b"\n", b"\r\n", b"\0", b"\x0b", b"\x0c", b"\x1f", b"\x7f", b"\x85",
       b"\xa0", b"\xff", b":", b";", b",", b'"', b"\\", b"/", b"%", b"#", b"?", b"@", b"[", b"+",
       b"-", b"_", b"0", b"1", b"x", b"A", b"=", b".", b"*"]
FIELDS = [b"Content-Length: 5", b"Content-Length: 0", b"content-length: 5", b"Content-Length: 05",
          b"Content-Length:5", b"Transfer-Encoding: chunked", b"transfer-encoding: CHUNKED",
          b"Transfer-Encoding: identity", b"Transfer-Encoding: gzip, chunked",
          b"Transfer-Encoding: chunked, chunked", b"Host: b.test", b"Host:", b"Connection: close",
          b"Connection: keep-alive", b"Connection: x, close", b"Expect: 100-continue", b"X: y",
          b"X:", b"X", b" X: y", b"Content_Length: 5", b"Trailer: X", b"TE: trailers",
          b"Upgrade: foo", b"Keep-Alive: 1", b"Proxy-Connection: close"]
NUMBERS = [b"0", b"1", b"4", b"5", b"6", b"+5", b"-5", b"0x5", b"5 ", b" 5", b"5,5", b"5, 6", b"05",
           b"5.", b"5;x", b"", b"4294967301", b"18446744073709551621", b"A", b"a", b"5\t"]


def known_cases(folder):
    """Returns (id, bytes) of each case in the files that is not a flood."""
    cases = []
    for name in FILES:
        file = folder / name
        if not file.exists():
            continue
        for case in json.loads(file.read_text()):
            text = case["bytes"]
            if "repeat" in case:
                text += case["repeat"][0] * case["repeat"][1] + case.get("rest", "")
            if len(text) <= BYTES_MAX:
                cases.append((case["id"], text.encode("latin-1")))
    return cases


def mutated(known, seed, count):
    """Yields (name, bytes) of `count` cases. The name contains the seed and the known case."""
    draw = random.Random(seed)
    for index in range(count):
        name, data = draw.choice(known)
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3))):
            data = draw.choice(MUTATIONS)(draw, data) or b"\r\n"
        if draw.random() < 0.1:
            data += draw.choice(known)[1]
        if draw.random() < 0.6:
            data += SENTINEL
        yield f"{seed}/{index} of {name}", data[:2 * BYTES_MAX]


def lines_of(data):
    head, end, rest = data.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), end + rest


def of_lines(lines, rest):
    return b"\r\n".join(lines) + rest


def insert_byte(draw, data):
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(ODD) + data[at:]


def replace_byte(draw, data):
    at = draw.randrange(len(data))
    return data[:at] + draw.choice(ODD) + data[at + 1 :]


def remove_byte(draw, data):
    at = draw.randrange(len(data))
    return data[:at] + data[at + 1 :]


def odd_at_a_border(draw, data):
    """Inserts a byte beside a colon, a line's end or a space, where white space matters."""
    borders = [at for at, byte in enumerate(data) if byte in b": \r\n;,"]
    if not borders:
        return insert_byte(draw, data)
    at = draw.choice(borders) + draw.randrange(2)
    return data[:at] + draw.choice(ODD[:14]) + data[at:]


def add_field(draw, data):
    lines, rest = lines_of(data)
    lines.insert(draw.randrange(1, len(lines) + 1), draw.choice(FIELDS))
    return of_lines(lines, rest)


def repeat_line(draw, data):
    lines, rest = lines_of(data)
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
    return of_lines(lines, rest)


def remove_line(draw, data):
    lines, rest = lines_of(data)
    del lines[draw.randrange(len(lines))]
    return of_lines(lines, rest)


def swap_lines(draw, data):
    lines, rest = lines_of(data)
    if len(lines) > 2:
        one, other = draw.sample(range(1, len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return of_lines(lines, rest)


def change_line_end(draw, data):
    ends = [at for at in range(len(data) - 1) if data[at : at + 2] == b"\r\n"]
    if not ends:
        return insert_byte(draw, data)
    at = draw.choice(ends)
    return data[:at] + draw.choice((b"\n", b"\r", b"\r\r\n", b"\n\r", b"")) + data[at + 2 :]


def change_case(draw, data):
    lines, rest = lines_of(data)
    index = draw.randrange(len(lines))
    lines[index] = draw.choice((bytes.upper, bytes.lower, bytes.swapcase))(lines[index])
    return of_lines(lines, rest)


def change_number(draw, data):
    """Changes a run of digits: a length, a size, a version or a port."""
    runs = []
    at = 0
    while at < len(data):
        end = at
        while end < len(data) and data[end : end + 1].isdigit():
            end += 1
        if end > at:
            runs.append((at, end))
        at = end + 1
    if not runs:
        return insert_byte(draw, data)
    start, end = draw.choice(runs)
    return data[:start] + draw.choice(NUMBERS) + data[end:]


def cut_chunk(draw, data):
    """Moves a border between chunks, or adds one."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end or not body:
        return insert_byte(draw, data)
    at = draw.randrange(len(body) + 1)
    piece = draw.choice((b"\r\n", b"\r\n1\r\n", b"0\r\n\r\n", b"1\r\na\r\n", b";a=b", b"\r\n0\r\n"))
    return head + end + body[:at] + piece + body[at:]


def truncate(draw, data):
    return data[: draw.randrange(1, len(data) + 1)]


MUTATIONS = [insert_byte, replace_byte, remove_byte, odd_at_a_border, odd_at_a_border, add_field,
             add_field, repeat_line, remove_line, swap_lines, change_line_end, change_line_end,
             change_case, change_number, change_number, cut_chunk, truncate]
