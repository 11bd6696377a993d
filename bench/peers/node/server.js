// Node's own HTTP server.
"use strict";

const http = require("node:http");
const { parseArgs } = require("node:util");

const options = parseArgs({ options: { port: { type: "string", default: "0" } } }).values;

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

const hello = "Hi\n";
const padded = `Hello node${".".repeat(53)}\n`;

const server = http.createServer((request, response) => {
  switch (`${request.method} ${request.url}`) {
    case "GET /":
      text(response, hello);
      break;
    case "GET /190":
      text(response, padded);
      break;
    case "POST /ping":
      ping(request, response);
      break;
    default:
      fail(response, 404);
  }
});
// No Keep-Alive header, which does not fit into 128 bytes, and no timer per connection.
server.keepAliveTimeout = 0;
server.listen({ host: "127.0.0.1", port: Number(options.port), backlog: 65535 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
