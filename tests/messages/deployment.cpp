#include "tests/messages/deployment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/messages/carrier_tls.hpp"
#include "tests/messages/http1_exchange.hpp"
#include "tests/messages/http2_exchange.hpp"
#include "tests/messages/memory_exchange.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::tests::messages {
namespace {

using namespace std::chrono_literals;

http::ServeOptions serve_options(Layer layer, const http::Limits& limits) {
  http::ServeOptions options{.limits = limits, .plain_http2 = http::PlainHttp2::prior_knowledge};
  if (layer == Layer::tls) options.tls = std::make_shared<tls::Server>(self_signed_options());
  return options;
}

/// Resets the connection at the end if the response has not come.
Task<ReceivedResponse> exchange_over(Stream& stream, Protocol protocol, const SentRequest& request,
                                     const std::vector<SentRequest>& before) {
  ReceivedResponse response;
  if (protocol == Protocol::http_2) {
    response = co_await exchange_http2(stream, request, before);
  } else {
    response = co_await exchange_http1(stream, protocol, request);
  }
  if (response.end == End::open) std::ignore = stream.set_close_mode(CloseMode::reset);
  co_return response;
}

}  // namespace

Deployment::Deployment(Loop& loop, const Carrier& carrier, const http::Router& routes,
                       const DeploymentOptions& options)
    : loop_(loop),
      carrier_(carrier),
      options_(options),
      origin_(loop, routes, serve_options(carrier.layer, options.limits)) {}

Task<Result<>> Deployment::open(Scope& scope) {
  scope_ = &scope;
  WEIR_CO_TRY(co_await open(scope, origin_, address_));
  if (carrier_.way == Way::direct) co_return {};
  http::ReverseProxyOptions options = options_.proxy;
  const bool http2 = carrier_.way == Way::proxied_http_2;
  options.client.plain_http2 = http2;
  options.client.tls = trusting_client(http2 ? Protocol::http_2 : Protocol::http_1_1);
  const std::string scheme = carrier_.layer == Layer::tls ? "https://" : "http://";
  if (options_.before_proxy) options_.before_proxy(proxy_routes_);
  constexpr std::uint64_t body_max = 64 * 1024 * 1024;  // the origin has the limits of its routes
  proxy_routes_.group("").fallback(
      http::reverse_proxy(scheme + address_.to_string(), std::move(options)),
      {.body_max = body_max});
  proxy_.emplace(loop_, proxy_routes_, serve_options(carrier_.layer, options_.limits));
  const auto opened = co_await open(scope, *proxy_, address_);
  co_return opened;
}

Task<Result<>> Deployment::open(Scope& scope, http::ServerState& server, os::Address& address) {
  WEIR_CO_TRY(tcp::Listener listener, co_await http::open_listener(server, Endpoint::loopback(0)));
  address = os::Address::loopback(listener.local_address().port());
  const auto serve = [](http::ServerState& own, tcp::Listener listening) -> Task<> {
    const auto accept = [&](Scope& connections) -> Task<> {
      std::ignore = co_await http::accept_connections(connections, own, std::move(listening));
    };
    std::ignore = co_await with_scope(OnFailure::isolate, accept);
  };
  scope.spawn(serve(server, std::move(listener)));
  co_return {};
}

Task<ReceivedResponse> Deployment::exchange_now(const SentRequest& request,
                                                const std::vector<SentRequest>& before) {
  ReceivedResponse response;
  if (carrier_.protocol == Protocol::memory) {
    response = co_await exchange_memory(front(), *scope_, request, before);
    co_return response;
  }
  auto stream = co_await tcp::connect(address_);
  EXPECT_TRUE(stream);
  if (!stream) co_return response;
  if (carrier_.layer == Layer::plain) {
    response = co_await exchange_over(*stream, carrier_.protocol, request, before);
    co_return response;
  }
  const auto client = trusting_client(carrier_.protocol);
  tls::Connector connector(loop_, *client);
  auto secured = co_await connector.connect(std::move(*stream), "weir.test");
  EXPECT_TRUE(secured) << secured.error().text();
  if (!secured) co_return response;
  response = co_await exchange_over(*secured, carrier_.protocol, request, before);
  co_return response;
}

Task<ReceivedResponse> Deployment::exchange(const SentRequest& request,
                                            const std::vector<SentRequest>& before) {
  auto response = co_await timeout(20s, exchange_now(request, before));
  if (response) co_return std::move(*response);
  co_return ReceivedResponse();
}

}  // namespace weir::tests::messages
