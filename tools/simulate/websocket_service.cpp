// The handlers of WebSockets, the publishers, and the service that is replaced.
#include "tools/simulate/websocket_service.hpp"

#include <chrono>
#include <utility>

#include "weir/app/http_server.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;

constexpr Duration before = 2s;  // the first message or replacement, if no subscriber is awaited

}  // namespace

/// The service that the handlers use.
class WebSocketService::Version {
 public:
  explicit Version(WebSocketService& service) noexcept : service_(service) {}
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;
  ~Version() {
    if (users_ != 0) service_.violation_ = "a service has stopped before its handlers";
  }
  void add_user() const noexcept { ++users_; }
  void remove_user() const noexcept { --users_; }

 private:
  WebSocketService& service_;
  mutable std::size_t users_ = 0;
};

/// A handler that runs.
class WebSocketService::Open {
 public:
  Open(WebSocketService& service, const Version& version) noexcept
      : service_(service), version_(version) {
    ++service_.open_;
    version_.add_user();
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    --service_.open_;
    version_.remove_user();
  }

 private:
  WebSocketService& service_;
  const Version& version_;
};

/// Publishes the topics of one core.
class WebSocketService::Publishers {
 public:
  Publishers(WebSocketService& service, Scope& scope) {
    for (unsigned topic = 0; topic < topics; ++topic) {
      if (topic % service.options_.cores != scope.loop().core()) continue;
      scope.spawn(service.publish_all(topic));
    }
  }
};

/// Replaces the service of the handlers.
class WebSocketService::Editor {
 public:
  Editor(WebSocketService& service, App& app, Scope& scope, ServiceId version) {
    scope.spawn(service.edit(app, version));
  }
};

WebSocketService::WebSocketService(sim::Random& random, const WebSocketServiceOptions& options)
    : random_(random),
      options_(options),
      oldest_({.capacity = options.capacity}),
      newest_({.capacity = options.capacity}),
      closing_({.capacity = options.capacity}),
      waiting_({.capacity = options.capacity}) {}

std::optional<http::WebSocketCompression> WebSocketService::compression() const {
  if (!options_.compressed) return std::nullopt;
  return http::WebSocketCompression{.send_window_bits = 12, .receive_window_bits = 12};
}

int WebSocketService::serve(loop::Platform& host) {
  http::Router router;
  const auto whole = [this](http::WebSocket& socket, const Version& version) {
    return echo(socket, version);
  };
  const auto in_pieces = [this](http::WebSocket& socket, const Version& version) {
    return echo_pieces(socket, version);
  };
  router.websocket("/echo", whole, {.compression = compression()});
  router.websocket("/pieces", in_pieces, {.compression = compression()});
  router.websocket("/topic/{number}",
                   [this](http::WebSocket& socket, unsigned topic, const Version& version) {
                     return follow(socket, topic, version);
                   });
  App app;
  const ServiceId version = app.shared([this] { return Version(*this); });
  app.per_core([this](Scope& scope) { return Publishers(*this, scope); });
  app.on_core(0,
              [this, version](App& of, Scope& scope) { return Editor(*this, of, scope, version); });
  serve_http(app, router,
             {.endpoint = Endpoint::any(80), .plain_http2 = http::PlainHttp2::prior_knowledge});
  Runtime runtime(host, {.cores = options_.cores, .announce = false});
  return app.run(runtime);
}

// --- the handlers --------------------------------------------------------------------------------

Task<Result<>> WebSocketService::echo(http::WebSocket& socket, const Version& version) {
  const Open open(*this, version);
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    if (message.text() == "return") co_return {};
    if (message.text() == "close") co_return co_await socket.close(asked_code, "as asked");
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

Task<Result<>> WebSocketService::echo_pieces(http::WebSocket& socket, const Version& version) {
  const Open open(*this, version);
  for (;;) {
    WEIR_CO_TRY(const auto piece, co_await socket.read_piece());
    WEIR_CO_TRY(co_await socket.send_piece(piece));
  }
}

Task<Result<>> WebSocketService::follow(http::WebSocket& socket, unsigned topic,
                                        const Version& version) {
  const Open open(*this, version);
  if (topic >= topics) co_return fail(Errc::bad_input);
  const http::TopicSubscription subscription = topic_of(topic).subscribe(socket);
  for (;;) WEIR_CO_TRY(co_await socket.read());
}

// --- the topics ----------------------------------------------------------------------------------

const http::AnyTopic& WebSocketService::topic_of(unsigned topic) const {
  switch (reaction(topic)) {
    case http::SlowSubscriber::drop_oldest:
      return oldest_;
    case http::SlowSubscriber::drop_newest:
      return newest_;
    case http::SlowSubscriber::close:
      return closing_;
    case http::SlowSubscriber::wait:
      break;
  }
  return waiting_;
}

http::AnyTopic& WebSocketService::topic_of(unsigned topic) {
  return const_cast<http::AnyTopic&>(std::as_const(*this).topic_of(topic));
}

Task<Result<>> WebSocketService::publish(unsigned topic, std::string text) {
  switch (reaction(topic)) {
    case http::SlowSubscriber::drop_oldest:
      co_return oldest_.publish(text);
    case http::SlowSubscriber::drop_newest:
      co_return newest_.publish(text);
    case http::SlowSubscriber::close:
      co_return closing_.publish(text);
    case http::SlowSubscriber::wait:
      break;
  }
  co_return co_await waiting_.publish(text);
}

/// Publishes messages that begin with their numbers, some of them without a pause between.
Task<Result<>> WebSocketService::publish_all(unsigned topic) {
  if (options_.subscribers == 0) WEIR_CO_TRY(co_await sleep(before));
  while (topic_of(topic).subscribers() < options_.subscribers) {
    WEIR_CO_TRY(co_await sleep(10ms));
  }
  while (published_[topic] < options_.messages) {
    const std::size_t most = options_.message_max * (random_.bernoulli(0.1) ? 100 : 1);
    std::string text = std::to_string(published_[topic]++) + " ";
    text.append(random_.below(most), '.');
    WEIR_CO_TRY(co_await publish(topic, std::move(text)));
    if (random_.bernoulli(0.7)) WEIR_CO_TRY(co_await sleep(random_.between({}, 40ms)));
  }
  over_[topic] = true;
  co_return {};
}

Task<> WebSocketService::edit(App& app, ServiceId version) {
  const auto waited = co_await sleep(before);
  if (!waited) co_return;
  while (replaced_ < options_.replacements) {
    const auto slept = co_await sleep(random_.between({}, 2s));
    if (!slept) co_return;
    const ServiceId fresh = app.shared([this] { return Version(*this); });
    const auto replaced = co_await app.replace(version, fresh);
    if (!replaced) {
      const bool stops = replaced.error() == Errc::cancelled || replaced.error() == Errc::conflict;
      if (!stops) violation_ = "not replaced: " + replaced.error().message();
      co_return;
    }
    version = fresh;
    ++replaced_;
  }
}

std::string WebSocketService::find_violation() const {
  if (!violation_.empty()) return violation_;
  if (open_ != 0) return std::to_string(open_) + " handlers still run";
  for (unsigned topic = 0; topic < topics; ++topic) {
    if (topic_of(topic).subscribers() != 0) return "a topic has subscribers";
  }
  return {};
}

}  // namespace weir::simulate
