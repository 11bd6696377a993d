// The server of HTTP/2, and its clients.
#include "tools/simulate/http2_scenario.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/response_fields.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;
using http::FieldsResult;
using http::H2Event;

constexpr std::size_t streams_max = 8;

std::string payload(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + " ";
  text.resize(size);
  return text;
}

http::Response bytes_of(http::Request&, std::size_t size) {
  return http::text(payload(size));
}

Task<http::Response> late(http::Request&, std::size_t size) {
  const auto slept = co_await sleep(std::chrono::milliseconds(size % 500));
  if (!slept) co_return http::Response(http::Status::service_unavailable);
  co_return http::text(payload(size));
}

Task<http::Response> echo(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(std::string(*body));
}

Task<http::Response> echo_pieces(http::Request& request) {
  std::string body;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::Response(http::to_status(piece.error()));
    if (piece->empty()) break;
    body += to_text(*piece);
  }
  co_return http::text(std::move(body));
}

Task<Result<>> write_pieces(http::BodySink& sink, std::size_t size) {
  const std::string all = payload(size);
  for (std::size_t at = 0; at < all.size(); at += 3000) {
    const Result<> written = co_await sink.write(std::string_view(all).substr(at, 3000));
    if (!written) co_return written;
  }
  co_return {};
}

http::Response in_pieces(http::Request&, std::size_t size) {
  return http::stream(http::text_type, write_pieces, size);
}

/// One request of a client.
struct Exchange : http::H2Stream {
  std::string expected;
  std::string_view unsent;  // of the body, which is `expected`
  std::string received;
  bool answered = false;   // the head was 200
  bool cancelled = false;  // by the client
};

}  // namespace

// --- the server ----------------------------------------------------------------------------------

int Http2Scenario::serve(loop::Platform& host) {
  http::Router routes;
  routes.get("/{size}", bytes_of);
  routes.get("/late/{size}", late);
  routes.get("/pieces/{size}", in_pieces);
  routes.post("/", echo);
  routes.post("/pieces", echo_pieces);
  http::ServeOptions serving{.endpoint = Endpoint::any(80), .plain_http2 = http::PlainHttp2::only};
  serving.limits.h2.stream_window = options_.window;
  // Clients that read slowly may need more than the default.
  Runtime runtime(host, {.cores = options_.cores, .drain_timeout = 200s, .announce = false});
  return runtime.run_on_each_core(http::serve, std::cref(routes), serving);
}

// --- the clients ---------------------------------------------------------------------------------

/// One connection of a client. One task reads, and one writes.
class Http2Scenario::Connection {
 public:
  Connection(Http2Scenario& scenario, tcp::Stream stream, Instant now, unsigned& left)
      : scenario_(scenario),
        random_(scenario.random_),
        stream_(std::move(stream)),
        limits_(limits_of(scenario.options_)),
        session_(http::H2Role::client, limits_, now),
        left_(left) {
    session_.start();
  }
  ~Connection() {
    for (auto& [id, each] : exchanges_) session_.release(*each);
  }

  Task<> run() {
    const auto both = co_await all(write_all(), read_all());
    static_cast<void>(both);
    judge_the_rest();
  }

 private:
  static http::H2Limits limits_of(const Http2ScenarioOptions& options) {
    http::H2Limits limits;
    limits.stream_window = options.window;
    return limits;
  }

  bool finished() const {
    const bool no_more = left_ == 0 || leaves_ || last_stream_ || scenario_.draining_;
    return ended_ || (no_more && exchanges_.empty());
  }

  Task<> write_all() {
    while (!ended_) {
      begin_requests();
      send_bodies();
      const Buffer output = session_.take_output();
      if (output.empty()) {
        if (finished()) break;
        const auto woken = co_await ready_.wait();
        if (!woken) break;
        continue;
      }
      const auto sent = co_await stream_.write(output.bytes());
      if (!sent) break;
    }
    ended_ = true;
    stream_.cancel_read();
  }

  Task<> read_all() {
    const Context context = co_await this_context();
    while (!ended_ && !finished()) {
      auto bytes = co_await stream_.read({.timeout = 100s});
      if (!bytes) {
        if (bytes.error() == Errc::timed_out) fail_with("no answer in 100 s");
        ended_ = true;
        break;
      }
      heard_ = true;
      Bytes rest = bytes->bytes();
      while (!ended_) {
        const H2Event event = session_.next(rest, context.loop->now());
        rest = rest.subspan(event.consumed);
        if (event.kind == H2Event::Kind::need_more) break;
        handle(event);
      }
      ready_.set();
      if (random_.bernoulli(0.05)) {
        const auto slept = co_await sleep(random_.between({}, 800ms));
        if (!slept) break;
      }
    }
    ready_.set();
  }

  void begin_requests() {
    while (left_ > 0 && exchanges_.size() < streams_max && !leaves_ && !last_stream_ &&
           !scenario_.draining_) {
      auto made = std::make_unique<Exchange>();
      if (!session_.open(*made)) return;
      --left_;
      Exchange& exchange = *made;
      exchanges_[exchange.id()] = std::move(made);
      const std::size_t size = random_.below(random_.bernoulli(0.1) ? 200'000 : 2000);
      exchange.expected = payload(size);
      const bool posts = random_.below(3) == 0;
      send_head(exchange, posts, size);
      if (posts && size > 0) {
        exchange.unsent = exchange.expected;
        session_.want_send(exchange);
      }
      if (random_.bernoulli(0.02)) leaves_ = true;  // the others go over another connection
      if (random_.bernoulli(0.7)) return;
    }
  }

  void send_head(Exchange& exchange, bool posts, std::size_t size) {
    constexpr std::array gets{"/", "/late/", "/pieces/"};
    constexpr std::array targets{"/", "/pieces"};
    const std::string path =
        posts ? random_.one_of(targets) : random_.one_of(gets) + std::to_string(size);
    const std::array<http::HeaderField, 4> fields{{{":method", posts ? "POST" : "GET"},
                                                   {":scheme", "http"},
                                                   {":path", path},
                                                   {":authority", "server"}}};
    std::size_t most = 0;
    for (const http::HeaderField& each : fields) {
      most += http::hpack_field_size_max(each.name, each.value);
    }
    const auto write = [&fields](char* out) {
      for (const http::HeaderField& each : fields) {
        out = http::write_hpack_field(each.name, each.value, out);
      }
      return out;
    };
    session_.send_headers(exchange, most, write, !posts || size == 0);
  }

  void send_bodies() {
    while (http::H2Stream* const stream = session_.next_sender()) {
      auto& exchange = static_cast<Exchange&>(*stream);
      const std::size_t sent = session_.send_data(exchange, to_bytes(exchange.unsent), true);
      exchange.unsent.remove_prefix(sent);
      if (exchange.unsent.empty()) session_.stop_sending(exchange);
    }
  }

  void handle(const H2Event& event) {
    auto* const exchange = static_cast<Exchange*>(event.stream);
    switch (event.kind) {
      case H2Event::Kind::headers:
        return read_head(*exchange, event);
      case H2Event::Kind::data:
        exchange->received += to_text(event.bytes);
        session_.consume(*exchange, event.bytes.size());
        if (event.end_stream) return finish(*exchange);
        return cancel_some(*exchange);
      case H2Event::Kind::reset:
        // The end of a response may be followed by NO_ERROR, which finish() has handled.
        if (!excused(*exchange)) fail_with("stream " + std::to_string(exchange->id()) + " reset");
        return forget(*exchange);
      case H2Event::Kind::goaway:
        last_stream_ = event.stream_id;
        if (event.error != http::H2Error::no_error) fail_with("GOAWAY with an error");
        return;
      case H2Event::Kind::failed:
        fail_with("an error of the server: " + std::to_string(static_cast<int>(event.error)));
        ended_ = true;
        return;
      default:
        return;
    }
  }

  void read_head(Exchange& exchange, const H2Event& event) {
    http::ReceivedResponseHead head;
    const auto read = reader_.read_response(table_, event.bytes, head);
    if (read.kind != FieldsResult::Kind::complete) return fail_with("an invalid head");
    session_.final_head(exchange);
    exchange.answered = head.status() == http::Status::ok;
    if (event.end_stream) return finish(exchange);
    cancel_some(exchange);
  }

  void cancel_some(Exchange& exchange) {
    if (!random_.bernoulli(scenario_.options_.cancel_share)) return;
    session_.reset(exchange, http::H2Error::cancel);
    ++scenario_.cancelled_;
    forget(exchange);
  }

  void finish(Exchange& exchange) {
    if (exchange.answered && exchange.received == exchange.expected) {
      ++scenario_.answered_;
    } else if (!excused(exchange)) {
      fail_with("stream " + std::to_string(exchange.id()) + " has another answer");
    }
    forget(exchange);
  }

  void forget(Exchange& exchange) {
    session_.release(exchange);
    exchanges_.erase(exchange.id());
  }

  /// Returns true if the drain of the server has excluded the request.
  bool excused(const Exchange& exchange) {
    // A connection that the server has not accepted yet ends with the listener.
    if (scenario_.draining_ && !heard_) return true;
    if (!last_stream_ || exchange.id() <= *last_stream_) return scenario_.options_.may_fail;
    ++scenario_.excluded_;
    return true;
  }

  /// Judges the requests that the connection has left without an answer.
  void judge_the_rest() {
    for (auto& [id, each] : exchanges_) {
      if (!excused(*each)) fail_with("stream " + std::to_string(id) + " has no answer");
    }
  }

  void fail_with(const std::string& what) {
    if (!scenario_.options_.may_fail) scenario_.fail_with(what);
  }

  Http2Scenario& scenario_;
  sim::Random& random_;
  tcp::Stream stream_;
  http::H2Limits limits_;
  http::H2Session session_;
  http::HpackTable table_;
  http::ResponseFieldReader reader_;
  std::map<std::uint32_t, std::unique_ptr<Exchange>> exchanges_;
  AutoResetEvent ready_;
  std::optional<std::uint32_t> last_stream_;  // of GOAWAY
  unsigned& left_;
  bool heard_ = false;  // bytes of the server
  bool leaves_ = false;
  bool ended_ = false;
};

Task<Result<>> Http2Scenario::ask(Scope&, Endpoint server) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  std::vector<Task<>> tasks;
  for (unsigned client = 0; client < options_.clients; ++client) {
    tasks.push_back(send_requests(server));
  }
  const auto done = co_await all(std::move(tasks));
  if (!done) co_return fail(done.error());
  co_return {};
}

Task<> Http2Scenario::send_requests(Endpoint server) {
  const Context context = co_await this_context();
  for (unsigned left = options_.requests, tries = 0; left > 0 && !draining_; ++tries) {
    const auto slept = co_await sleep(random_.between({}, 2s));
    if (!slept || tries > 10 * options_.requests) co_return;
    auto stream = co_await tcp::connect(server);
    if (!stream) {
      if (!options_.may_fail && !draining_) fail_with("no connection");
      continue;
    }
    Connection connection(*this, std::move(*stream), context.loop->now(), left);
    co_await connection.run();
  }
}

void Http2Scenario::fail_with(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

}  // namespace weir::simulate
