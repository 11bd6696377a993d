// A server of WebSockets on ws: it returns each message.
"use strict";

const { parseArgs } = require("node:util");
const { WebSocketServer } = require("ws");

const options = parseArgs({ options: { port: { type: "string", default: "0" } } }).values;
const server = new WebSocketServer({
  host: "127.0.0.1", port: Number(options.port), path: "/ws", perMessageDeflate: false,
});
server.on("connection", (socket) => {
  socket.on("message", (message, isBinary) => socket.send(message, { binary: isBinary }));
  socket.on("error", () => socket.terminate());
});
server.on("listening", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
