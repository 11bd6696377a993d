// websocket_chat: a chat with rooms in a browser. Messages reach the members of a room on all
// cores.
//
//     ./dev run websocket_chat
//
// Open http://localhost:8080/?room=tea in two windows.
#include <weir/http.hpp>

#include <map>
#include <memory>
#include <mutex>

using namespace weir;

/// The rooms of the chat, which all cores share. A member that reads slowly loses old messages.
class Rooms {
 public:
  using Room = http::Topic<http::SlowSubscriber::drop_oldest>;

  Room& operator[](const std::string& name) {
    const std::lock_guard lock(mutex_);
    constexpr std::size_t rooms_max = 1'000;  // clients choose the names
    const bool is_new = !rooms_.contains(name);
    std::unique_ptr<Room>& room = rooms_[is_new && rooms_.size() >= rooms_max ? "lobby" : name];
    if (room == nullptr) room = std::make_unique<Room>();
    return *room;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Room>> rooms_;
};

struct Member {
  Checked<std::string, rule::Length<1, 40>> name;
};

Task<Result<>> chat(http::WebSocket& socket, std::string room_name, http::Query<Member> member,
                    Rooms& rooms) {
  Rooms::Room& room = rooms[room_name];
  const http::TopicSubscription subscription = room.subscribe(socket);
  std::ignore = room.publish(*member->name + " has come");
  for (;;) {
    const auto message = co_await socket.read();
    if (!message) break;
    if (message->is_text)
      std::ignore = room.publish(*member->name + ": " + std::string(message->text()));
  }
  std::ignore = room.publish(*member->name + " has gone");
  co_return {};
}

constexpr http::Literal page(R"html(<!doctype html><meta charset="utf-8"><title>Chat</title>
<ul id="log"></ul><form id="form"><input id="text" autofocus autocomplete="off"></form>
<script>
  const query = new URLSearchParams(location.search);
  const room = query.get("room") || "lobby", name = query.get("name") || "guest";
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/chat/${room}?name=${name}`);
  const say = (line) => {
    const item = document.createElement("li");
    item.textContent = line;
    document.getElementById("log").append(item);
  };
  socket.onmessage = (event) => say(event.data);
  socket.onclose = () => say("(the connection has ended)");
  const text = document.getElementById("text");
  document.getElementById("form").onsubmit = (event) => {
    event.preventDefault();
    socket.send(text.value);
    text.value = "";
  };
</script>)html");

int main(int argc, char** argv) {
  Rooms rooms;
  http::Router router;
  router.get("/", [] { return http::html(page); });
  router.websocket("/chat/{room}", chat);
  router.bind(rooms);
  return http::run(router, argc, argv);
}
