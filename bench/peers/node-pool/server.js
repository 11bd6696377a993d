// Node with the work of examples/pool_lab.cpp, on libuv's pool of UV_THREADPOOL_SIZE threads. With
// --processes N it is a cluster, and each process has its own pool.
"use strict";

const cluster = require("node:cluster");
const crypto = require("node:crypto");
const http = require("node:http");
const { parseArgs } = require("node:util");

const options = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    processes: { type: "string", default: "1" },
  },
}).values;
const size = Number(process.env.UV_THREADPOOL_SIZE || 4);

// ---- A serving process -----------------------------------------------------------------------

let running = 0; // started and not ended; libuv does not report which have a thread
const ended = [];

/** The monotonic clock, of which all processes on the machine see the same time. */
function now() {
  return Number(process.hrtime.bigint());
}

function start(computes, iterations) {
  const arrived = now();
  const end = () => {
    running -= 1;
    ended.push({ arrived_ns: arrived, took_ns: now() - arrived });
  };
  running += 1;
  if (computes) {
    crypto.pbkdf2("", "", iterations, 512, "sha512", end);
  } else {
    require("./sleep.node").sleep(end);
  }
}

function report(from) {
  return { size, running, queued: 0, reason: "chosen", ended: ended.slice(from) };
}

function answer(response, status, body, type = "text/plain") {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

/** `ask(from, done)` gives the report of all processes. */
function serve(ask) {
  const server = http.createServer((request, response) => {
    const [, what, which, count] = request.url.split("/");
    if (request.method === "POST" && what === "test") {
      for (let i = 0; i < 10; ++i) {
        start(which === "cpu" || (which === "mix" && i % 2 === 0), Number(count));
      }
      answer(response, 202, "");
    } else if (what === "report") {
      const done = (all) => answer(response, 200, JSON.stringify(all), "application/json");
      ask(Number(which), done);
    } else if (request.url === "/") {
      answer(response, 200, "cheap\n");
    } else {
      answer(response, 404, "");
    }
  });
  server.keepAliveTimeout = 0;
  server.listen({ host: "127.0.0.1", port: Number(options.port), backlog: 65535 }, () => {
    if (!cluster.isWorker) console.log(`listening on 127.0.0.1:${server.address().port}`);
  });
}

// ---- A cluster: each process gets the report from the first, which collects all reports ------

function serveInCluster() {
  const waiting = [];
  let told = 0;
  process.on("message", (message) => {
    if (message.collect) {
      process.send({ collected: report(told) });
      told = ended.length;
    } else {
      waiting.shift()(message);
    }
  });
  serve((from, done) => {
    waiting.push(done);
    process.send({ from });
  });
}

function lead(processes) {
  const workers = Array.from({ length: processes }, () => cluster.fork());
  const all = [];
  const asking = []; // in sequence
  let parts = [];
  let listening = 0;
  const collect = () => workers.forEach((worker) => worker.send({ collect: true }));
  cluster.on("listening", (_, address) => {
    listening += 1;
    if (listening === processes) console.log(`listening on 127.0.0.1:${address.port}`);
  });
  cluster.on("message", (worker, message) => {
    if (message.collected) {
      parts.push(message.collected);
      all.push(...message.collected.ended);
      if (parts.length < processes) return;
      const sum = parts.reduce((total, part) => total + part.running, 0);
      const { worker: asker, from } = asking.shift();
      asker.send({ ...parts[0], running: sum, ended: all.slice(from) });
      parts = [];
      if (asking.length > 0) collect();
    } else if (asking.push({ worker, from: message.from }) === 1) {
      collect();
    }
  });
}

const processes = Number(options.processes);
if (processes > 1 && cluster.isPrimary) {
  lead(processes);
} else if (cluster.isWorker) {
  serveInCluster();
} else {
  serve((from, done) => done(report(from)));
}
