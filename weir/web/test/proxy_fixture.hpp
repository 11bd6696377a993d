// A fixture with a reverse proxy between a raw client and servers that follow scripts.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/test/client_fixture.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/net/tcp.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http {

/// A reverse proxy at port 80. Its upstreams are at the ports 81 and 82.
class ProxyFixture : public ClientFixture {
 protected:
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  }

  /// Returns the number of failures of upstreams.
  std::uint64_t failures() const {
    const MetricSnapshot snapshot = loop_->metrics().read();
    for (const Metric& each : snapshot.metrics()) {
      if (each.name == "http proxy upstream failures") return each.value;
    }
    return 0;
  }

  /// Sends the bytes to the proxy, and returns all that it answers until it closes.
  static Task<std::string> talk_to_proxy(std::string request) {
    std::string text;
    auto stream = co_await tcp::connect(Endpoint::loopback(80));
    EXPECT_TRUE(stream);
    if (!stream) co_return text;
    const auto written = co_await stream->write(request);
    EXPECT_TRUE(written);
    for (;;) {
      const auto piece = co_await stream->read();
      if (!piece) co_return text;
      text += piece->text();
    }
  }

  /// Runs `use` with a proxy whose upstreams follow the scripts.
  void with_proxy(std::vector<std::vector<Step>> scripts, ReverseProxyOptions options, Body use) {
    proxy_.emplace(reverse_proxy(upstreams_, std::move(options)));
    if (!server_) {
      routes_.group("").fallback(
          [this](Request& request) -> Task<Response> { return (*proxy_)(request); },
          {.body_max = body_max_});
      serve(limits_);
    }
    with_server(std::move(scripts), ClientOptions(), std::move(use));
  }

  /// Runs `use` with a proxy whose upstream is a server of Weir at port 85 with these routes. It
  /// ends when the connections of the client have ended.
  void with_inner_server(Router& routes, ReverseProxyOptions options, const Body& use,
                         PlainHttp2 protocol = PlainHttp2::off, const Limits& limits = {}) {
    ServerState inner(*loop_, routes, {.limits = limits, .plain_http2 = protocol});
    inner_server_ = &inner;
    upstreams_ = {"http://127.0.0.1:85"};
    with_proxy({}, std::move(options), [&](Client& client) -> Task<> {
      const auto body = [&](Scope& scope) -> Task<> {
        scope.spawn(with_scope(OnFailure::isolate, &listen_and_serve, std::ref(inner),
                               os::Address::loopback(85)));
        std::ignore = co_await sleep(Duration::zero());
        co_await use(client);
        scope.cancel();
      };
      std::ignore = co_await with_scope(OnFailure::isolate, body);
    });
  }

  /// Returns the answer of the proxy to the request, whose connection closes after it.
  std::string ask(std::vector<std::vector<Step>> scripts, std::string request,
                  ReverseProxyOptions options = {}) {
    std::string answer;
    with_proxy(std::move(scripts), std::move(options),
               [&](Client&) -> Task<> { answer = co_await talk_to_proxy(std::move(request)); });
    return answer;
  }
  std::string statuses(std::vector<std::vector<Step>> scripts, std::string request,
                       ReverseProxyOptions options = {}) {
    return sim::statuses_of(
        sim::parse_http_responses(ask(std::move(scripts), std::move(request), std::move(options))));
  }
  const std::vector<std::string>& upstream_requests() const { return server_of_scripts_.requests; }

  std::vector<std::string> upstreams_{"http://127.0.0.1:81"};
  Limits limits_;
  ServerState* inner_server_ = nullptr;
  std::uint64_t body_max_ = 1024 * 1024;

  std::optional<ReverseProxy> proxy_;
};

}  // namespace weir::http
