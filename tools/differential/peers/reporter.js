// Node's own HTTP server, which tells what it understood.
"use strict";

const http = require("node:http");

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces);
    const told = JSON.stringify({
      method: request.method,
      target: request.url,
      body_bytes: body.length,
      body: body.subarray(0, 256).toString("hex"),
    });
    // Fields are latin-1, as targets are.
    response.writeHead(200, { "X-Understood": told, "Content-Length": 0 });
    response.end();
  });
});
// Who ends its sending still gets its answers.
server.httpAllowHalfOpen = true;
server.listen({ host: "127.0.0.1", port: 0 }, () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
