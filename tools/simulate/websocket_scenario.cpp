// The clients of WebSockets, and the subscribers of topics.
#include "tools/simulate/websocket_scenario.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;
using http::SlowSubscriber;
using http::WebSocketCloseCode;

constexpr auto client_code = static_cast<WebSocketCloseCode>(4002);
constexpr std::size_t small_max = 2000;     // bytes of messages of which several are on their way
constexpr std::size_t large_max = 100'000;  // bytes of the others
// Silence after the last message of a topic: longer than the delays of the network.
constexpr Duration silence = 3s;
constexpr std::uint32_t stream_window = 8192;  // as the buffers of a connection; slow ones fill it

}  // namespace

Task<Result<>> WebSocketScenario::ask(Scope&) {
  WEIR_CO_TRY(co_await sleep(1s));
  http::ClientOptions how;
  how.plain_http2 = options_.http2;
  how.limits.http2.stream_window = stream_window;
  http::Client client(std::move(how));
  std::vector<Task<>> tasks;
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    tasks.push_back(send_messages(client));
  }
  for (unsigned topic = 0; topic < WebSocketService::topics; ++topic) {
    for (unsigned number = 0; number < options_.subscribers; ++number) {
      tasks.push_back(subscribe(client, topic, number % 2 == 1));
    }
  }
  const auto ended = co_await all(std::move(tasks));
  if (!ended) co_return fail(ended.error());
  done_ = true;
  co_return {};
}

// --- clients that send messages ------------------------------------------------------------------

Task<> WebSocketScenario::send_messages(http::Client& client) {
  for (unsigned number = 0; number < options_.sessions && !draining_; ++number) {
    const auto slept = co_await sleep(random_.between({}, 1s));
    if (!slept) co_return;
    co_await run_session(client);
  }
}

Task<> WebSocketScenario::run_session(http::Client& client) {
  constexpr std::array ways{Leaving::returns, Leaving::closes, Leaving::asks_to_close,
                            Leaving::asks_to_return, Leaving::vanishes};
  Session session;
  session.leaving = random_.one_of(ways);
  const bool asks =
      session.leaving == Leaving::asks_to_close || session.leaving == Leaving::asks_to_return;
  session.pieces = !asks && random_.bernoulli(0.5);  // a piece may be a part of the word
  session.is_text = random_.bernoulli(0.5);
  session.messages = static_cast<unsigned>(random_.below(options_.messages + 1));
  session.depth = 1 + random_.below(8);
  const bool began_late = draining_;
  auto talk = [this, &session](http::WebSocket& socket) -> Task<Result<>> {
    const Result<> result = co_await exchange(socket, session);
    session.has_ended = true;
    session.code = socket.close_code();
    co_return result;
  };
  http::ClientWebSocketOptions options;
  options.compression = service_.compression();
  const char* const url = session.pieces ? "ws://server/pieces" : "ws://server/echo";
  auto talking = client.websocket(url, talk, std::move(options));
  Result<> ended;
  if (session.leaving == Leaving::vanishes) {
    ended = co_await timeout(random_.between({}, 200ms), std::move(talking));
  } else {
    ended = co_await std::move(talking);
  }
  judge(session, ended, began_late);
}

Task<Result<>> WebSocketScenario::exchange(http::WebSocket& socket, Session& session) {
  std::deque<std::string> sent;
  for (unsigned number = 0; number < session.messages; ++number) {
    // The pieces of a large one would fill all buffers, since this task reads after it has sent.
    const bool large = !session.pieces && random_.bernoulli(0.05);
    const std::size_t depth = large ? 0 : session.depth - 1;
    while (sent.size() > depth) {
      WEIR_CO_TRY(co_await take(socket, session, std::move(sent.front())));
      sent.pop_front();
    }
    std::string text = std::to_string(number) + " ";
    text.append(random_.below(large ? large_max : small_max), 'x');
    sent.push_back(text);
    WEIR_CO_TRY(co_await send(socket, session, std::move(text)));
    if (large) {
      WEIR_CO_TRY(co_await take(socket, session, std::move(sent.front())));
      sent.pop_front();
    }
    if (random_.bernoulli(0.3)) WEIR_CO_TRY(co_await sleep(random_.between({}, 50ms)));
    // A client that leaves messages unread does not read the pings behind them.
    const bool rests = sent.empty() && random_.bernoulli(0.01);
    if (rests) WEIR_CO_TRY(co_await sleep(100s));
  }
  for (; !sent.empty(); sent.pop_front()) {
    WEIR_CO_TRY(co_await take(socket, session, std::move(sent.front())));
  }
  session.complete = true;
  co_return co_await end(socket, session);
}

/// Sends a message, some of them in pieces.
Task<Result<>> WebSocketScenario::send(http::WebSocket& socket, const Session& session,
                                       std::string text) {
  Bytes rest = to_bytes(text);
  while (random_.bernoulli(0.2)) {
    const std::size_t size = random_.below(rest.size() + 1);
    const http::WebSocketMessage piece{
        .is_text = session.is_text, .ends = false, .bytes = rest.first(size)};
    WEIR_CO_TRY(co_await socket.send_piece(piece));
    rest = rest.subspan(size);
  }
  const http::WebSocketMessage last{.is_text = session.is_text, .ends = true, .bytes = rest};
  co_return co_await socket.send_piece(last);
}

/// Reads the next message.
Task<Result<>> WebSocketScenario::take(http::WebSocket& socket, const Session& session,
                                       std::string expected) {
  WEIR_CO_TRY(const auto message, co_await socket.read());
  if (message.text() != expected) fail_with("another message returns");
  if (message.is_text != session.is_text) fail_with("a message of another type returns");
  ++answered_;
  co_return {};
}

/// Ends a WebSocket whose messages have returned.
Task<Result<>> WebSocketScenario::end(http::WebSocket& socket, Session& session) {
  switch (session.leaving) {
    case Leaving::returns:
      co_return {};
    case Leaving::closes:
      co_return co_await socket.close(client_code, "done");
    case Leaving::asks_to_close:
      WEIR_CO_TRY(co_await socket.send("close"));
      break;
    case Leaving::asks_to_return:
      WEIR_CO_TRY(co_await socket.send("return"));
      break;
    case Leaving::vanishes:
      break;
  }
  const auto message = co_await socket.read();
  if (message) fail_with("a message that was not sent");
  co_return {};
}

void WebSocketScenario::judge(const Session& session, const Result<>& ended, bool began_late) {
  note_code(session.code);
  const bool vanished = session.leaving == Leaving::vanishes;
  if (vanished || options_.disturbance == WebSocketDisturbance::faults) return;
  const bool drained = draining_ && (began_late || !session.has_ended ||
                                     session.code == WebSocketCloseCode::going_away);
  const bool replaced = options_.disturbance == WebSocketDisturbance::replace &&
                        session.code == WebSocketCloseCode::service_restart;
  // The Close may wait too long behind the messages of other WebSockets of the connection.
  const bool is_late = options_.http2 && !ended && ended.error() == system_error(ECONNRESET) &&
                       options_.disturbance == WebSocketDisturbance::replace;
  if (drained || replaced || is_late) return;
  if (!ended) return fail_with("a session fails: " + ended.error().message());
  if (!session.complete) return fail_with("a session ends early");
  WebSocketCloseCode expected = WebSocketCloseCode::normal;
  switch (session.leaving) {
    case Leaving::closes:
      expected = client_code;
      break;
    case Leaving::asks_to_close:
      expected = WebSocketService::asked_code;
      break;
    case Leaving::returns:  // its Close follows
      expected = WebSocketCloseCode::abnormal;
      break;
    case Leaving::asks_to_return:
    case Leaving::vanishes:
      break;
  }
  if (session.code != expected) {
    fail_with("a session ends with " + std::to_string(static_cast<int>(session.code)));
  }
}

// --- subscribers ---------------------------------------------------------------------------------

Task<> WebSocketScenario::subscribe(http::Client& client, unsigned topic, bool slow) {
  const std::string url = "ws://server/topic/" + std::to_string(topic);
  while (!draining_ && !service_.is_over(topic)) {
    auto read = [this, topic, slow](http::WebSocket& socket) -> Task<Result<>> {
      const Result<> result = co_await follow(socket, topic, slow);
      note_code(socket.close_code());
      co_return result;
    };
    std::ignore = co_await client.websocket(url, read);
    const bool stays = options_.disturbance != WebSocketDisturbance::none;
    if (!stays) co_return;
    const auto slept = co_await sleep(random_.between({}, 500ms));
    if (!slept) co_return;
  }
}

Task<Result<>> WebSocketScenario::follow(http::WebSocket& socket, unsigned topic, bool slow) {
  Followers& followers = followers_[topic];
  const bool is_first = options_.disturbance == WebSocketDisturbance::none;
  std::optional<unsigned> next;
  if (is_first) next = 0;
  Result<> result;
  for (;;) {
    auto reading = socket.read();
    const auto message = co_await timeout(silence, std::move(reading));
    if (!message && message.error() == Errc::timed_out && socket.is_open()) {
      if (service_.is_over(topic)) break;
      continue;
    }
    if (!message) {
      result = fail(message.error());
      break;
    }
    unsigned number = 0;
    const std::string_view text = message->text();
    std::from_chars(text.data(), text.data() + text.size(), number);
    if (next && number < *next) fail_with("a message of a topic comes late or twice");
    if (next) followers.missed += number - *next;
    next = number + 1;
    ++followers.received;
    if (slow && random_.bernoulli(0.3)) result = co_await sleep(random_.between({}, 300ms));
    if (!result) break;  // the connection is lost
  }
  const unsigned lacking = service_.published(topic) - next.value_or(service_.published(topic));
  const bool may_stall = options_.disturbance == WebSocketDisturbance::faults;
  if (result && !may_stall) followers.missed += lacking;
  if (!result && lacking != 0) ++followers.incomplete;
  co_return result;
}

std::size_t WebSocketScenario::closed_with(WebSocketCloseCode code) const {
  return codes_.at(static_cast<std::size_t>(code));
}

void WebSocketScenario::note_code(WebSocketCloseCode code) {
  ++codes_.at(static_cast<std::size_t>(code));
}

std::size_t WebSocketScenario::missed() const noexcept {
  std::size_t sum = 0;
  for (const Followers& each : followers_) sum += each.missed;
  return sum;
}

void WebSocketScenario::fail_with(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

std::string WebSocketScenario::find_violation() const {
  if (!violation_.empty()) return violation_;
  const bool disturbed = options_.disturbance != WebSocketDisturbance::none;
  for (unsigned topic = 0; topic < WebSocketService::topics; ++topic) {
    const Followers& followers = followers_[topic];
    const http::TopicStatistics statistics = service_.statistics(topic);
    const SlowSubscriber reaction = WebSocketService::reaction(topic);
    const std::string name = "topic " + std::to_string(topic) + ": ";
    const bool drops =
        reaction == SlowSubscriber::drop_oldest || reaction == SlowSubscriber::drop_newest;
    if (followers.missed > statistics.dropped) {
      return name + std::to_string(followers.missed) + " messages are missing, " +
             std::to_string(statistics.dropped) + " were dropped";
    }
    if (!drops && statistics.dropped != 0) return name + "messages were dropped";
    if (followers.received > statistics.delivered) return name + "more arrived than was delivered";
    if (disturbed) continue;
    if (statistics.published != service_.options().messages) return name + "has not ended";
    if (followers.missed != statistics.dropped) return name + "a message was not dropped";
    if (followers.incomplete != statistics.closed) return name + "a subscriber was not closed";
    if (reaction == SlowSubscriber::close) continue;  // it delivers to those that are closed later
    if (statistics.delivered != followers.received) return name + "a delivered message is missing";
  }
  return service_.find_violation();
}

}  // namespace weir::simulate
