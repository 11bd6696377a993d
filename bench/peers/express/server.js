// Express in production mode, without the headers that its documentation allows to switch off.
"use strict";

process.env.NODE_ENV = "production";

const { parseArgs } = require("node:util");
const express = require("express");

const options = parseArgs({ options: { port: { type: "string", default: "0" } } }).values;

const hello = Buffer.from("Hi\n");
const padded = Buffer.from(`Hello Express${".".repeat(50)}\n`);

const app = express();
app.disable("x-powered-by");
app.disable("etag");

// Express names no character set for bytes, so responses have the common length.
app.get("/", (request, response) => {
  response.setHeader("Content-Type", "text/plain");
  response.send(hello);
});

app.get("/190", (request, response) => {
  response.setHeader("Content-Type", "text/plain");
  response.send(padded);
});

app.post("/ping", express.json(), (request, response) => {
  const sequence = request.body?.sequence;
  if (!Number.isInteger(sequence)) {
    response.sendStatus(400);
    return;
  }
  response.json({ sequence });
});

const server = app.listen({ host: "127.0.0.1", port: Number(options.port), backlog: 65535 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
// No Keep-Alive header, which does not fit into 128 bytes, and no timer per connection.
server.keepAliveTimeout = 0;
