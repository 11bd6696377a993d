#!/usr/bin/env python3
"""Runs the shell lines of README.md and docs/guide against the examples, and compares the output.

    guide_test.py --build FOLDER [PAGE...]

A block of shell with `curl` runs against the example that the page names above it. The comment
behind a `curl` line, and comment lines below it, are its expected output. `...` at the end stands
for any text. With `-i` the output is the status line.
"""

import argparse
import gzip
import http.client
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", *sorted(f"docs/guide/{page.name}"
                              for page in (ROOT / "docs/guide").glob("*.md")))
EXAMPLE = re.compile(r"\bexamples/(\w+)\.[ch]pp\b")
RUN = re.compile(r"\./dev run (\w+)(?: -- ([^`#\n]*))?")
LISTENING = re.compile(r"listening on \S*:(\d+)$")
NO_ANSWER = "(no answer)"
RESTARTING = "restarting in "
SECONDS_MAX = 30


def blocks(text):
    """Yields (line, example, arguments, lines) of each block of shell that has a `curl` line."""
    example, language, start, lines, arguments = None, None, 0, [], {}
    for number, line in enumerate(text.splitlines(), 1):
        for name, more in RUN.findall(line):
            arguments[name] = shlex.split(more)
        if fence := re.match(r"```(\w*)$", line):
            if language == "sh" and any(each.startswith("curl ") for each in lines):
                yield start, example, arguments.get(example, []), lines
            language = fence[1] if language is None else None
            start, lines = number, []
        elif language is not None:
            lines.append(line)
        elif named := EXAMPLE.findall(line):
            example = named[-1]


def steps(lines):
    """Yields (command, expected lines) of a block."""
    command, expected = None, []
    for line in lines:
        if line.startswith("#"):
            expected.append(line.removeprefix("#").strip())
            continue
        if command:
            yield command, expected
        command, _, comment = line.partition(" # ")
        expected = [comment.strip()] if comment else []
    if command:
        yield command, expected


class Example:
    """A running example on a port that the kernel chose."""

    def __init__(self, build, name, arguments, folder):
        source = (ROOT / f"examples/{name}.cpp").read_text()
        by_port = "Options::from_args" in source or "http::run(" in source
        port = ["--port", "0"] if by_port else ["--listen=127.0.0.1:0"]
        self.process = subprocess.Popen(
            [build / f"examples/example_{name}", *arguments, *port], cwd=folder, text=True,
            stderr=subprocess.PIPE)
        self.port, self.log = None, []
        self.listens = threading.Event()
        threading.Thread(target=self.read_log, daemon=True).start()
        if not self.listens.wait(SECONDS_MAX) or self.port is None:
            raise SystemExit(f"FAILED: {name} does not serve:\n{''.join(self.log)}")

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            if found := LISTENING.search(line.strip()):
                self.port = int(found[1])
                self.listens.set()
        self.listens.set()

    def wait_for_restart(self):
        """Waits until the supervisor has seen the crash of a worker and restarts it."""
        until = time.monotonic() + SECONDS_MAX
        while not any(RESTARTING in line for line in self.log):
            if time.monotonic() > until:
                raise SystemExit(f"FAILED: no worker was restarted:\n{''.join(self.log)}")
            time.sleep(0.01)

    def end(self):
        self.process.terminate()
        return self.process.wait(SECONDS_MAX)


def multipart(fields, folder):
    """Returns the media type and the body of a form with the fields of `curl -F`."""
    parts = []
    for field in fields:
        name, _, value = field.partition("=")
        file = value.startswith("@")
        if file:
            value = (folder / value[1:]).read_text()
        parts.append(f'--XX\r\nContent-Disposition: form-data; name="{name}"' +
                     (f'; filename="{field.partition("@")[2]}"' if file else "") +
                     f"\r\n\r\n{value}\r\n")
    return "multipart/form-data; boundary=XX", "".join(parts) + "--XX--\r\n"


def curl(command, port, folder):
    """Returns the output lines of a `curl` command."""
    words = shlex.split(command)[1:]
    method, headers, body, url, status_only = None, {}, None, None, False
    jar, fields = None, []
    while words:
        word = words.pop(0)
        if word == "-i":
            status_only = True
        elif word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(":")
            headers[name] = value.strip()
        elif word == "--compressed":
            headers["Accept-Encoding"] = "gzip"
        elif word == "-c":
            jar = folder / words.pop(0)
        elif word == "-b":
            headers["Cookie"] = (folder / words.pop(0)).read_text()
        elif word == "-F":
            fields.append(words.pop(0))
        elif word == "-d":
            body = words.pop(0)
            if body.startswith("@"):
                body = (folder / body[1:]).read_text().replace("\n", "")
        elif word.startswith("-"):
            raise SystemExit(f"FAILED: unknown option of curl: {word}")
        else:
            url = urllib.parse.urlsplit(f"http://{word}")
    if fields:
        headers["Content-Type"], body = multipart(fields, folder)
    if body is not None:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    target = url.path + (f"?{url.query}" if url.query else "")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    try:
        connection.request(method or ("GET" if body is None else "POST"), target, body, headers)
        answer = connection.getresponse()
        if jar:
            pairs = [each.partition(";")[0] for each in answer.headers.get_all("Set-Cookie", [])]
            jar.write_text("; ".join(pairs))
        if status_only:
            return [f"HTTP/1.1 {answer.status} {answer.reason}"]
        content = answer.read()
        if "Accept-Encoding" in headers:
            content = gzip.decompress(content)  # it fails if the answer is not compressed
        return content.decode().splitlines()
    except (http.client.HTTPException, ConnectionError):
        return [NO_ANSWER]
    finally:
        connection.close()


def fits(output, expected):
    return len(output) == len(expected) and all(
        line.startswith(wanted[:-3]) if wanted.endswith("...") else line == wanted
        for line, wanted in zip(output, expected))


def run_block(build, folder, example, arguments, lines):
    """Returns the commands whose output is not as the page says."""
    server = Example(build, example, arguments, folder)
    try:
        return run_steps(server, folder, example, lines)
    finally:
        server.process.kill()  # it has ended, unless there was an exception


def run_steps(server, folder, example, lines):
    wrong = []
    for command, expected in steps(lines):
        if command.startswith("./dev run "):
            continue  # the server runs
        if not command.startswith("curl "):
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
            continue
        output = curl(command, server.port, folder)
        if not expected and output == [NO_ANSWER]:
            server.wait_for_restart()  # the page lets a worker crash
        # An event, or a changed file, reaches the other cores a moment later.
        until = time.monotonic() + SECONDS_MAX
        while expected and not fits(output, expected) and time.monotonic() < until:
            if " -X " in command or " -d " in command:
                break
            time.sleep(0.1)
            output = curl(command, server.port, folder)
        if expected and not fits(output, expected):
            wrong.append(f"{command.strip()}\n  printed {output}\n  not {expected}")
    if status := server.end():
        wrong.append(f"{example} ended with status {status}:\n{''.join(server.log)}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="*", default=PAGES)
    options = parser.parse_args()
    count, failed = 0, False
    for page in options.pages:
        for line, example, arguments, lines in blocks((ROOT / page).read_text()):
            count += 1
            with tempfile.TemporaryDirectory(prefix="weir-guide-") as folder:
                for wrong in run_block(options.build.resolve(), pathlib.Path(folder), example,
                                       arguments, lines):
                    failed = True
                    print(f"{page}:{line}: {wrong}", flush=True)
    print(f"guide: {count} blocks ran")
    if count == 0:
        raise SystemExit("FAILED: no page has a block to run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
