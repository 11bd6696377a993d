// Tests spans and traceparent over HTTP/2, with and without TLS, and those of WebSockets.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/telemetry/traces/http_spans.hpp"
#include "weir/telemetry/traces/test/collector_fixture.hpp"
#include "weir/tls/certificate/identity.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::telemetry::http_spans_h2_test {
namespace {

using namespace std::chrono_literals;

/// Parameter: true to use TLS.
class Http2Spans : public testing::TestWithParam<bool> {
 protected:
  Http2Spans() {
    world_.host("collector").start_service(collector_.main());
    tls::SelfSigned certificate;
    certificate.names = {"front"};
    certificate.not_before = world_.host("front").wall_time();
    identity_ = tls::Identity::self_signed(certificate).value();
  }
  std::string url(std::string_view path) const {
    return std::string(GetParam() ? "https://front" : "http://front:443").append(path);
  }
  /// Starts the service "front" with a tracer.
  void serve(std::function<void(http::Router&)> add) {
    world_.host("front").start_service([this, add = std::move(add)](loop::Platform& platform) {
      TraceOptions options = collector_options();
      options.service_name = "front";
      Tracer tracer(platform, options);
      http::Router routes;
      routes.use(trace_requests(tracer));
      add(routes);
      http::ServeOptions serving{.endpoint = Endpoint::any(443)};
      if (GetParam()) {
        tls::ServerOptions secure;
        secure.identities = {*identity_};
        secure.protocols = {"h2"};
        serving.tls = std::make_shared<tls::Server>(std::move(secure));
      } else {
        serving.plain_http2 = http::PlainHttp2::prior_knowledge;
      }
      return Runtime(platform, {}).run_on_each_core([&](Scope& scope) -> Task<Result<>> {
        tracer.start(scope);
        auto running = http::serve(scope, routes, serving);
        co_return co_await std::move(running);
      });
    });
  }
  /// Runs a program with a traced client of HTTP/2, and the World to its end.
  void use(std::function<Task<>(http::Client&, Tracer&)> body) {
    world_.host("asker").start(
        traced_program(collector_options(), report_, [this, body](Tracer& tracer) -> Task<> {
          TraceClient traces(tracer);
          http::ClientOptions options;
          options.observer = &traces;
          options.plain_http2 = !GetParam();
          tls::ClientOptions secure;
          secure.trust = {.system = false, .files = {}, .pem = identity_->chain()};
          secure.protocols = {"h2"};
          options.tls = std::make_shared<tls::Client>(std::move(secure));
          http::Client client(std::move(options));
          auto working = body(client, tracer);
          co_await std::move(working);
          std::ignore = co_await sleep(7s);  // the batches are sent
        }));
    const sim::WorldReport report = world_.run_until_done(10min);
    EXPECT_TRUE(report.ok()) << report.text();
  }
  std::vector<ReceivedSpan> spans_of(std::string_view kind) const {
    std::vector<ReceivedSpan> found;
    for (const ReceivedSpan& each : collector_.spans) {
      if (each.kind == kind) found.push_back(each);
    }
    return found;
  }

  sim::World world_{{.seed = 1, .jitter = sim::no_jitter}};
  Collector collector_;
  TraceReport report_;
  std::optional<tls::Identity> identity_;
};

TEST_P(Http2Spans, OfStreamsOfOneConnectionDiffer) {
  serve([](http::Router& routes) {
    routes.get("/item/{id}", [](int id) -> Task<http::Response> {
      // The streams overlap, and each has its own current span, also after a wait.
      const std::string before = to_hex(current_span()->span_id);
      std::ignore = co_await sleep(std::chrono::milliseconds(100 * id));
      const Span own("work");
      co_return http::text(before + to_hex(current_span()->span_id));
    });
  });
  std::vector<std::string> bodies;
  std::size_t connections = 0;
  std::string root;
  use([&](http::Client& client, Tracer& tracer) -> Task<> {
    const auto get = [&](int id) -> Task<> {
      auto response = co_await client.get(url("/item/" + std::to_string(id)));
      EXPECT_TRUE(response) << response.error().message();
      if (!response) co_return;
      EXPECT_EQ(response->version(), http::Version::http_2);
      bodies.push_back((co_await response->body()).value_or(""));
    };
    const auto all = [&](Scope& scope) -> Task<> {
      for (int id = 3; id > 0; --id) scope.spawn(get(id));
      std::ignore = co_await sleep(150ms);
      connections = client.connection_count();
    };
    Span span(tracer, "root");
    root = to_hex(span.active().span_id);
    auto running = in_span(std::move(span), with_scope(all));
    std::ignore = co_await std::move(running);
  });
  EXPECT_EQ(connections, 1U);
  const std::vector<ReceivedSpan> servers = spans_of("2");
  const std::vector<ReceivedSpan> clients = spans_of("3");
  ASSERT_EQ(servers.size(), 3U);
  ASSERT_EQ(clients.size(), 3U);
  std::set<std::string> client_ids;
  for (const ReceivedSpan& each : clients) {
    client_ids.insert(each.span_id);
    EXPECT_EQ(each.parent_id, root) << "a task that a scope has spawned keeps the span";
    EXPECT_TRUE(each.has("network.protocol.version=1:2"));
    EXPECT_TRUE(each.has("http.response.status_code=3:200"));
  }
  EXPECT_EQ(client_ids.size(), 3U);
  std::set<std::string> ids;
  for (const ReceivedSpan& each : servers) {
    ids.insert(each.span_id);
    EXPECT_EQ(client_ids.erase(each.parent_id), 1U) << "each stream has the span of its request";
    EXPECT_EQ(each.trace_id, clients.front().trace_id);
    EXPECT_EQ(each.name, "GET /item/{id}");
    EXPECT_TRUE(each.has("network.protocol.version=1:2"));
    EXPECT_TRUE(each.has(GetParam() ? "url.scheme=1:https" : "url.scheme=1:http"));
  }
  EXPECT_EQ(ids.size(), 3U);
  ASSERT_EQ(bodies.size(), 3U);
  for (const std::string& each : bodies) {
    EXPECT_EQ(each.substr(0, 16), each.substr(16)) << "the span stays after a wait";
    EXPECT_TRUE(ids.contains(each.substr(0, 16)));
  }
  for (const ReceivedSpan& each : spans_of("1")) {
    if (each.name != "work") continue;
    EXPECT_EQ(ids.erase(each.parent_id), 1U);
  }
  EXPECT_TRUE(ids.empty());
}

TEST_P(Http2Spans, FollowTheHandshakeOfAWebSocket) {
  serve([](http::Router& routes) {
    routes.get("/socket", [](const http::Request& request) {
      const std::string parent(request.header("traceparent").value_or("none"));
      return http::accept_websocket(request, [parent](http::WebSocket& socket) -> Task<Result<>> {
        co_return co_await socket.send(parent);
      });
    });
  });
  std::vector<std::string> received;
  use([&](http::Client& client, Tracer&) -> Task<> {
    const auto read = [&](http::WebSocket& socket) -> Task<Result<>> {
      WEIR_CO_TRY(const auto message, co_await socket.read());
      received.emplace_back(message.text());
      co_return {};
    };
    for (const bool http2 : {true, false}) {
      if (!http2 && GetParam()) continue;  // the server offers HTTP/2 only
      http::ClientWebSocketOptions options;
      options.http2 = http2;
      auto opening = client.websocket(url("/socket"), read, std::move(options));
      const auto ended = co_await std::move(opening);
      EXPECT_TRUE(ended) << ended.error().message();
    }
    auto missing =
        client.websocket(url("/missing"), [](http::WebSocket&) -> Task<> { co_return; }, {});
    EXPECT_FALSE(co_await std::move(missing));
  });
  const std::size_t opened = GetParam() ? 1 : 2;
  const std::vector<ReceivedSpan> clients = spans_of("3");
  ASSERT_EQ(clients.size(), opened + 1);
  ASSERT_EQ(received.size(), opened);
  std::set<std::string> parents;
  for (const ReceivedSpan& each : spans_of("2")) parents.insert(each.parent_id);
  for (std::size_t index = 0; index < opened; ++index) {
    const ReceivedSpan& each = clients[index];
    EXPECT_EQ(received[index], "00-" + each.trace_id + "-" + each.span_id + "-03");
    EXPECT_TRUE(
        each.has(index == 0 ? "network.protocol.version=1:2" : "network.protocol.version=1:1.1"));
    EXPECT_TRUE(each.has(index == 0 ? "http.response.status_code=3:200"
                                    : "http.response.status_code=3:101"));
    EXPECT_EQ(each.status, "");
    EXPECT_TRUE(parents.contains(each.span_id));
  }
  EXPECT_EQ(clients.back().status, "2");
  EXPECT_TRUE(clients.back().has("error.type=1:404"));
}

INSTANTIATE_TEST_SUITE_P(Tls, Http2Spans, testing::Bool());

}  // namespace
}  // namespace weir::telemetry::http_spans_h2_test
