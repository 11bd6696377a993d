// web_page: a page that uses what browsers offer: fetch, uploads with progress, ranges of an audio
// file, server-sent events, and a chat by WebSocket. It tests itself and shows the results.
//     ./dev run web_page -- --tls-self-signed --port 8443    # https://localhost:8443/
#include "examples/web_page.hpp"
#include "examples/web_page_tone.hpp"

#include <atomic>
#include <mutex>

#include <weir/runtime/messaging/broadcast.hpp>
#include <weir/web.hpp>

using namespace weir;

struct Numbers {
  int left;
  int right;
};
struct Sum {
  int total;
};
Sum add(Numbers numbers) {
  return {numbers.left + numbers.right};
}

Task<http::Response> count_bytes(http::Request& request) {
  std::uint64_t received = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) co_return http::text(std::to_string(received));
    received += piece->size();
  }
}

using Events = Broadcast<http::EncodedEvent>;

Task<Result<>> follow(http::EventStream& stream, Events::Subscription messages) {
  const http::ServerSentEvent joined{.name = "joined"};
  WEIR_CO_TRY(co_await stream.send(joined));
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await messages.receive());
    WEIR_CO_TRY(co_await stream.send(*message));
  }
}

Task<http::Status> post(http::Request& request, Events& events) {
  static std::atomic<unsigned> last_id = 0;
  const auto text = co_await request.body();
  if (!text) co_return http::to_status(text.error());
  const std::string id = std::to_string(++last_id);
  const auto encoded = http::ServerSentEvent{.data = *text, .id = id}.encode();
  if (!encoded || !events.publish(*encoded)) co_return http::Status::service_unavailable;
  co_return http::Status::no_content;
}

using Room = http::Topic<http::SlowSubscriber::drop_oldest>;
struct Member {
  std::string name;
};

Task<Result<>> chat(http::WebSocket& socket, http::Query<Member> member, Room& room) {
  const http::TopicSubscription subscription = room.subscribe(socket);
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    std::ignore = room.publish(member->name + ": " + std::string(message.text()));
  }
}

int main(int argc, char** argv) {
  Tone tone;
  Events events{{.slow_reader_policy = SlowReaderPolicy::disconnect}};
  Room room;
  http::Router router;
  router.get("/", [] { return http::html(web_page); });
  router.post("/sum", add);
  router.post("/upload", count_bytes, {.body_max = 16 * 1024 * 1024});
  router.get("/tone.wav", play);
  router.get("/ranges", [](Tone& played) {
    const std::lock_guard lock(played.mutex);
    return played.ranges;
  });
  router.get("/events", [](const http::Request& request, Events& all) {
    return http::events(request, follow, all.subscribe());
  });
  router.post("/messages", post);
  router.websocket("/chat", chat);
  router.bind(tone, events, room);
  return http::run(router, argc, argv);
}
