// server_sent_events: a page on which each visitor sees all messages, on all cores. A browser that
// loses its connection continues after its last message.
#include <charconv>
#include <deque>
#include <mutex>

#include <weir/runtime/messaging/broadcast.hpp>
#include <weir/web.hpp>

using namespace weir;

/// The last messages, and the broadcast of new ones to the clients of all cores.
class Wall {
 public:
  Result<> post(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const std::string id = std::to_string(++last_id_);
    http::ServerSentEvent event;
    event.data = text;
    event.id = id;
    WEIR_TRY(auto bytes, event.encode());  // once, for all clients
    recent_.push_back(bytes);
    if (recent_.size() > recent_max) recent_.pop_front();
    return messages_.publish(std::move(bytes));
  }

  using Messages = Broadcast<http::EncodedEvent>;
  /// Returns the recent messages after the one with the id, and a subscription to later ones.
  std::pair<std::deque<http::EncodedEvent>, Messages::Subscription> join(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t first = last_id_ - recent_.size();
    const auto seen = id < first || id > last_id_ ? 0 : static_cast<std::ptrdiff_t>(id - first);
    return {std::deque(recent_.begin() + seen, recent_.end()), messages_.subscribe()};
  }

 private:
  static constexpr std::size_t recent_max = 100;
  std::mutex mutex_;
  std::deque<http::EncodedEvent> recent_;
  std::uint64_t last_id_ = 0;
  // A client that is 256 messages behind is disconnected. It reconnects, and gets the recent ones.
  Messages messages_{{.slow_reader_policy = SlowReaderPolicy::disconnect}};
};

Task<Result<>> follow(http::EventStream& stream, Wall* wall) {
  std::uint64_t last = 0;
  const std::string_view id = stream.last_event_id();
  std::from_chars(id.data(), id.data() + id.size(), last);
  auto [recent, messages] = wall->join(last);
  for (const http::EncodedEvent& each : recent) {
    if (auto sent = co_await stream.send(each); !sent) co_return sent;
  }
  for (;;) {
    auto message = co_await messages.receive();
    if (!message) co_return fail(message.error());
    if (auto sent = co_await stream.send(**message); !sent) co_return sent;
  }
}

constexpr char page[] = R"(<!doctype html><title>Wall</title><ul id="wall"></ul>
<form id="form"><input id="text" autofocus></form>
<script>
form.onsubmit = () => {
  fetch('/messages', {method: 'POST', body: text.value});
  text.value = '';
  return false;
};
new EventSource('/events').onmessage = (event) => {
  const line = document.createElement('li');
  line.textContent = event.data;
  wall.append(line);
};
</script>)";

int main(int argc, char** argv) {
  Wall wall;
  http::Router routes;
  routes.get("/", [] { return http::html(page); });
  routes.get("/events",
             [&](const http::Request& request) { return http::events(request, follow, &wall); });
  routes.post("/messages", [&](http::Request& request) -> Task<Result<http::Status>> {
    auto text = co_await request.body();
    if (!text) co_return fail(text.error());
    if (auto posted = wall.post(*text); !posted) co_return fail(posted.error());
    co_return http::Status::no_content;
  });
  return http::run(routes, argc, argv);
}
