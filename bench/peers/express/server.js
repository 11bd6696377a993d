// Express in production mode, without the fields that its documentation says can be switched off.
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

// Of text that is bytes already, Express names no character set: responses are as long as
// everybody's.
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
// No Keep-Alive field, which responses of 128 bytes have no room for, and no timer for each.
server.keepAliveTimeout = 0;
