// The server of the scenarios of WebSockets: it returns messages, and publishes topics.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/app/app.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/ws/topic.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/http/ws/websocket_limits.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::simulate {

struct WebSocketServiceOptions {
  unsigned cores = 2;
  unsigned messages = 60;         ///< number of messages of each topic
  std::size_t message_max = 200;  ///< bytes of most messages; some have a hundred times more
  std::size_t capacity = 4;       ///< see http::TopicOptions
  /// Number of subscribers of a topic before it begins. 0: it begins without them.
  std::size_t subscribers = 0;
  bool compressed = false;    ///< true: messages that return are compressed in both directions
  unsigned replacements = 0;  ///< number of replacements of the service of the handlers
};

/// The routes are /echo and /pieces, which return messages, and /topic/N, for each reaction to slow
/// subscribers. A client of /echo asks for the end: "close" lets the handler close with
/// `asked_code`, "return" lets it return. The service requires these rules:
/// - the service that a handler uses stops after the handler;
/// - all handlers end.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class WebSocketService {
 public:
  static constexpr unsigned topics = 4;
  static constexpr auto asked_code = static_cast<http::WebSocketCloseCode>(4001);

  WebSocketService(sim::Random& random, const WebSocketServiceOptions& options);

  const WebSocketServiceOptions& options() const noexcept { return options_; }
  /// Returns the compression of the routes that return messages, if any.
  std::optional<http::WebSocketCompression> compression() const;
  /// The main function of the server.
  int serve(loop::Platform& host);

  /// Returns the reaction of a topic.
  static http::SlowSubscriber reaction(unsigned topic) {
    return static_cast<http::SlowSubscriber>(topic);
  }
  /// Returns the number of messages that were published, or are being published.
  unsigned published(unsigned topic) const { return published_[topic]; }
  /// Returns true if no more messages of the topic follow.
  bool is_over(unsigned topic) const { return over_[topic]; }
  http::TopicStatistics statistics(unsigned topic) const { return topic_of(topic).statistics(); }
  /// Returns a violation of a rule, or an empty text. Call it when all clients have left.
  std::string find_violation() const;
  /// Returns the number of replacements so far.
  unsigned replaced() const noexcept { return replaced_; }

 private:
  class Version;
  class Publishers;
  class Editor;
  class Open;

  const http::AnyTopic& topic_of(unsigned topic) const;
  http::AnyTopic& topic_of(unsigned topic);
  Task<Result<>> echo(http::WebSocket& socket, const Version& version);
  Task<Result<>> echo_pieces(http::WebSocket& socket, const Version& version);
  Task<Result<>> follow(http::WebSocket& socket, unsigned topic, const Version& version);
  Task<Result<>> publish_all(unsigned topic);
  Task<Result<>> publish(unsigned topic, std::string text);
  Task<> edit(App& app, ServiceId version);

  sim::Random& random_;
  WebSocketServiceOptions options_;
  http::Topic<http::SlowSubscriber::drop_oldest> oldest_;
  http::Topic<http::SlowSubscriber::drop_newest> newest_;
  http::Topic<http::SlowSubscriber::close> closing_;
  http::Topic<http::SlowSubscriber::wait> waiting_;
  std::array<unsigned, topics> published_{};
  std::array<bool, topics> over_{};
  std::size_t open_ = 0;  // handlers
  unsigned replaced_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
