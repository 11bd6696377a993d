// web_page.hpp: the page of web_page.cpp, which also tests itself.
#pragma once

#include <weir/http.hpp>

inline constexpr weir::http::Literal web_page(R"html(<!doctype html><meta charset="utf-8">
<title>Weir in a browser</title>
<style>body { font: 1em sans-serif; margin: 2em } .FAIL { color: red } .PASS { color: #070 }</style>
<h1>Weir in a browser</h1>
<p>Upload: <progress id="progress" max="1" value="0"></progress> <span id="uploaded"></span></p>
<audio id="audio" controls preload="metadata" src="/tone.wav"></audio>
<form id="form"><input id="text" autocomplete="off" placeholder="Write to the chat"></form>
<ul id="chat"></ul><h2>Checks</h2><ul id="results"></ul>
<script>
const element = (id) => document.getElementById(id);
const add = (list, text, style) => {
  const item = Object.assign(document.createElement("li"), {textContent: text, className: style});
  element(list).append(item);
};
const expect = (holds, what) => { if (!holds) throw Error(what); };
const next = (target, name) => new Promise((resolve, reject) => {
  target.addEventListener(name, resolve, {once: true});
  setTimeout(() => reject(Error(`no ${name} within 20 s`)), 20000);
});
const check = async (name, run) => {
  const [word, text] = await run().then((text) => ["PASS", text], (error) => ["FAIL", error]);
  add("results", `${word} ${name}: ${text}`, word);
};
const socket = new WebSocket(`wss://${location.host}/chat?name=you`);
socket.onmessage = (event) => add("chat", event.data, "");
element("form").onsubmit = (event) => {
  event.preventDefault();
  socket.send(element("text").value);
  event.target.reset();
};
const checks = {
  protocol: async () => {
    const [{nextHopProtocol}] = performance.getEntriesByType("navigation");
    expect(nextHopProtocol === "h2", nextHopProtocol);
    return nextHopProtocol;
  },
  fetch: async () => {
    const headers = {"Content-Type": "application/json"}, body = '{"left": 2, "right": 40}';
    const sum = await (await fetch("/sum", {method: "POST", headers, body})).json();
    expect(sum.total === 42, JSON.stringify(sum));
    return JSON.stringify(sum);
  },
  upload: async () => {
    const request = new XMLHttpRequest(), size = 8 << 20;
    let steps = 0;
    request.upload.onprogress = ({loaded, total}) => {
      element("progress").value = loaded / total;
      element("uploaded").textContent = `${loaded} of ${total} bytes, ${++steps} steps`;
    };
    request.open("POST", "/upload");
    request.send(new Uint8Array(size));
    await next(request, "load");
    expect(request.responseText === String(size) && steps > 0, request.responseText);
    return `${request.responseText} bytes in ${steps} steps`;
  },
  seek: async () => {
    const audio = element("audio");
    if (audio.readyState === 0) await next(audio, "loadedmetadata");
    audio.currentTime = 1000;
    await next(audio, "seeked");
    const ranges = await (await fetch("/ranges")).json();
    expect(ranges.some((first) => first > 7e6), `ranges from ${ranges}`);
    return `${audio.currentTime} s of ${audio.duration} s, ranges from ${ranges}`;
  },
  events: async () => {
    const source = new EventSource("/events"), message = next(source, "message");
    await next(source, "joined");
    await fetch("/messages", {method: "POST", body: "two\nlines"});
    const {data, lastEventId} = await message;
    expect(data === "two\nlines" && lastEventId > 0, `${data}, id ${lastEventId}`);
    return `id ${lastEventId}`;
  },
  websocket: async () => {
    if (socket.readyState === 0) await next(socket, "open");
    socket.send("hello \u{1F600}");
    const {data} = await next(socket, "message");
    expect(data === "you: hello \u{1F600}", data);
    return data;
  },
};
(async () => {
  for (const name in checks) await check(name, checks[name]);
  document.body.dataset.done = "yes";
})();
</script>)html");
