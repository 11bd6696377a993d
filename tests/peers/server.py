"""Python's own HTTP server, with routes for the HTTP client."""

import http.server

LARGE = b"0123456789abcdef" * (512 * 1024)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 1  # seconds for which a connection may be idle

    def send_body(self, body, headers=()):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        if self.path == "/hello":
            self.send_body(b"hello")
        elif self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n")
        elif self.path == "/nothing":
            self.send_response(204)
            self.end_headers()
        elif self.path == "/large":
            self.send_body(LARGE)
        elif self.path == "/close":
            self.send_body(b"closing", [("Connection", "close")])
            self.close_connection = True
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def do_POST(self):
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_body(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
