// Node's own HTTP server, with routes for the HTTP client.
"use strict";

const http = require("node:http");

const large = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");

const server = http.createServer((request, response) => {
  if (request.method === "POST") {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => response.end(Buffer.concat(pieces)));
  } else if (request.url === "/hello") {
    response.writeHead(200, { "Content-Length": 5 });
    response.end("hello");
  } else if (request.url === "/chunked") {
    response.write("one");
    response.write("two");
    response.end("three");
  } else if (request.url === "/nothing") {
    response.writeHead(204);
    response.end();
  } else if (request.url === "/large") {
    response.writeHead(200, { "Content-Length": large.length });
    response.end(large);
  } else if (request.url === "/close") {
    response.writeHead(200, { Connection: "close" });
    response.end("closing");
  } else {
    response.writeHead(404);
    response.end();
  }
});
server.keepAliveTimeout = 3000; // Node announces it, and the client keeps a margin of 1 s
server.listen({ host: "127.0.0.1", port: 0 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
