// Talks to Weir with the library ws, as a client or as a server of cases. Prints what is wrong.
//
//     node websocket.js client URL
//     node websocket.js server
"use strict";

const { WebSocket, WebSocketServer } = require("ws");

const texts = ["", "text", "Grüße, 世界 🌍", "x".repeat(125), "x".repeat(126), "x".repeat(65536)];
const messages = [...texts, ...texts.map((text) => Buffer.from(text)), Buffer.alloc(5_000_000, 7)];
const codes = [1000, 1001, 1008, 1011, 3000, 4999];
const options = { perMessageDeflate: true, rejectUnauthorized: false };

let failed = false;
function check(holds, what) {
  if (holds) return;
  failed = true;
  console.log(what);
}

function opened(socket) {
  return new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
}
function closed(socket) {
  return new Promise((resolve) => socket.on("close", resolve));
}

/** Sends the message, and checks that it returns. */
function echo(socket, message, send = (data) => socket.send(data)) {
  return new Promise((resolve) => {
    socket.once("message", (data, isBinary) => {
      check(isBinary !== (typeof message === "string"), "another type returns");
      check(data.equals(Buffer.from(message)), `another message of ${message.length} returns`);
      resolve();
    });
    send(message);
  });
}

function sendInFragments(socket, message) {
  const third = Math.floor(message.length / 3) + 1;
  socket.send(message.slice(0, third), { fin: false });
  socket.ping("between");
  socket.send(message.slice(third, 2 * third), { fin: false });
  socket.send(message.slice(2 * third), { fin: true });
}

function ping(socket, payload) {
  return new Promise((resolve) => {
    socket.once("pong", (data) => {
      check(data.equals(Buffer.from(payload)), "another pong");
      resolve();
    });
    socket.ping(payload);
  });
}

async function client(url) {
  const socket = new WebSocket(url, options);
  await opened(socket);
  check((socket.extensions !== "") === !url.endsWith("/ws"), "another extension is in use");
  for (const message of messages) {
    await echo(socket, message);
    await echo(socket, message, (data) => sendInFragments(socket, data));
  }
  await ping(socket, "hello");
  socket.terminate();
  for (const code of codes) {
    const other = new WebSocket(url, options);
    await opened(other);
    other.close(code, "reason");
    const received = await closed(other);
    check(received === code, `closed with ${received}, not with ${code}`);
  }
}

const cases = [
  ...messages.map((message) => (socket) => echo(socket, message)),
  (socket) => echo(socket, "abcdefghi".repeat(1000), (data) => sendInFragments(socket, data)),
  (socket) => ping(socket, "hello"),
  ...codes.map((code) => async (socket) => {
    socket.close(code, "reason");
    const received = await closed(socket);
    check(received === code, `the client closes with ${received}, not with ${code}`);
  }),
];

function server() {
  const running = [];
  const listening = new WebSocketServer({ ...options, host: "127.0.0.1", port: 0 });
  listening.on("connection", async (socket, request) => {
    socket.on("error", (error) => check(false, error.message));
    const number = /case=(\d+)/.exec(request.url);
    if (request.url === "/getCaseCount") {
      socket.send(String(cases.length));
    } else if (number) {
      running.push(cases[Number(number[1]) - 1](socket));
      await running.at(-1);
    } else {
      await Promise.all(running);
      check(running.length === cases.length, `${running.length} of ${cases.length} cases`);
      socket.on("close", () => listening.close());
      process.exitCode = failed ? 1 : 0;
    }
    socket.close();
  });
  listening.on("listening", () => {
    console.log(`listening on 127.0.0.1:${listening.address().port}`);
  });
}

if (process.argv[2] === "server") {
  server();
} else {
  client(process.argv[3]).then(() => {
    process.exitCode = failed ? 1 : 0;
  }, (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
