// Node's own HTTP server.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const { parseArgs } = require("node:util");

const options = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "tls-cert": { type: "string" },
    "tls-key": { type: "string" },
  },
}).values;

function text(response, body) {
  response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": body.length });
  response.end(body);
}

function fail(response, status) {
  const body = `${http.STATUS_CODES[status]}\n`;
  response.writeHead(status, { "Content-Type": "text/plain", "Content-Length": body.length });
  response.end(body);
}

function pong(response, received) {
  let sequence;
  try {
    ({ sequence } = JSON.parse(received));
  } catch {
    fail(response, 400);
    return;
  }
  if (!Number.isInteger(sequence)) {
    fail(response, 400);
    return;
  }
  const body = JSON.stringify({ sequence });
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
}

function ping(request, response) {
  let received = "";
  request.setEncoding("utf8");
  request.on("data", (piece) => {
    received += piece;
  });
  request.on("end", () => pong(response, received));
}

function zeros(response, body) {
  response.writeHead(200, {
    "Content-Type": "application/octet-stream",
    "Content-Length": body.length,
  });
  response.end(body);
}

const kibibytes = Buffer.alloc(16 * 1024);
const mebibyte = Buffer.alloc(1024 * 1024);
const hello = "Hi\n";
const padded = `Hello node${".".repeat(53)}\n`;

function answer(request, response) {
  switch (`${request.method} ${request.url}`) {
    case "GET /":
      text(response, hello);
      break;
    case "GET /190":
      text(response, padded);
      break;
    case "GET /16k":
      zeros(response, kibibytes);
      break;
    case "GET /1m":
      zeros(response, mebibyte);
      break;
    case "POST /ping":
      ping(request, response);
      break;
    default:
      fail(response, 404);
  }
}

const server = options["tls-cert"]
  ? https.createServer(
      {
        cert: fs.readFileSync(options["tls-cert"]),
        key: fs.readFileSync(options["tls-key"]),
      },
      answer,
    )
  : http.createServer(answer);
// No Keep-Alive header, which does not fit into 128 bytes, and no timer per connection.
server.keepAliveTimeout = 0;
server.listen({ host: "127.0.0.1", port: Number(options.port), backlog: 65535 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
