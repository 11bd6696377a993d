// Simulates clients of WebSockets that leave in many ways, and slow subscribers of topics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "tools/simulate/websocket_service.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {
class Client;
}

namespace weir::simulate {

/// The event that disturbs the clients.
enum class WebSocketDisturbance : std::uint8_t {
  none,
  drain,    ///< the server drains
  replace,  ///< the service of the handlers is replaced
  faults,   ///< connections are reset, half-closed and stalled
};

struct WebSocketScenarioOptions {
  WebSocketDisturbance disturbance = WebSocketDisturbance::none;
  unsigned workers = 10;     ///< number of clients that send messages, at a time
  unsigned sessions = 6;     ///< number of WebSockets of each of them
  unsigned messages = 30;    ///< most messages of one of these WebSockets
  unsigned subscribers = 6;  ///< number of subscribers of each topic
  bool http2 = false;        ///< true: WebSockets are streams of connections of HTTP/2
};

/// Clients send messages, which a handler returns, and leave in several ways. Others subscribe to
/// topics, and half of them read slowly. The test requires these rules:
/// - the messages of a client return whole and in their order, and the closing handshake has the
///   right code; without a disturbance, all of them return;
/// - a subscriber gets the messages in their order and none twice;
/// - a topic counts the messages that its subscribers miss, and loses none if it waits for them or
///   closes slow ones; it counts those that it closes;
/// - a server that drains closes with 1001, and a service that is replaced with 1012;
/// - the rules of WebSocketService.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class WebSocketScenario {
 public:
  WebSocketScenario(sim::Random& random, WebSocketService& service,
                    const WebSocketScenarioOptions& options) noexcept
      : random_(random), service_(service), options_(options) {}

  const WebSocketScenarioOptions& options() const noexcept { return options_; }
  /// The main function of the clients' core.
  Task<Result<>> ask(Scope& scope);
  /// Tells the clients that the server drains.
  void on_drain() noexcept { draining_ = true; }
  /// Returns true if the clients have left.
  bool done() const noexcept { return done_; }
  /// Returns a violation of a rule, or an empty text. Call it after done(), some time later.
  std::string find_violation() const;
  /// Returns the number of messages that have returned.
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of WebSockets that have ended with this code.
  std::size_t closed_with(http::WebSocketCloseCode code) const;
  /// Returns the number of messages that subscribers have missed.
  std::size_t missed() const noexcept;

 private:
  enum class Leaving : std::uint8_t { returns, closes, asks_to_close, asks_to_return, vanishes };
  /// One WebSocket that sends messages.
  struct Session {
    Leaving leaving = Leaving::returns;
    bool pieces = false;  // the route
    bool is_text = true;
    unsigned messages = 0;
    std::size_t depth = 1;  // messages that are on their way
    bool complete = false;  // all messages have returned
    bool has_ended = false;
    http::WebSocketCloseCode code = http::WebSocketCloseCode::abnormal;
  };
  /// The subscribers of one topic.
  struct Followers {
    std::size_t received = 0;
    std::size_t missed = 0;      // between the first and the last one of a subscriber
    std::size_t incomplete = 0;  // subscribers that have not got the last messages
  };

  Task<> send_messages(http::Client& client);
  Task<> run_session(http::Client& client);
  Task<Result<>> exchange(http::WebSocket& socket, Session& session);
  Task<Result<>> send(http::WebSocket& socket, const Session& session, std::string text);
  Task<Result<>> take(http::WebSocket& socket, const Session& session, std::string expected);
  Task<Result<>> end(http::WebSocket& socket, Session& session);
  void judge(const Session& session, const Result<>& ended, bool began_late);

  Task<> subscribe(http::Client& client, unsigned topic, bool slow);
  Task<Result<>> follow(http::WebSocket& socket, unsigned topic, bool slow);
  void note_code(http::WebSocketCloseCode code);
  void fail_with(const std::string& what);

  sim::Random& random_;
  WebSocketService& service_;
  WebSocketScenarioOptions options_;
  std::array<Followers, WebSocketService::topics> followers_;
  std::size_t answered_ = 0;
  std::array<std::size_t, 5000> codes_{};  // of WebSockets that have ended
  bool draining_ = false;
  bool done_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
