// Cancels requests of the HTTP client at any time on every real backend; see
// tests/cancel_sweep.hpp.
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/http.hpp"
#include "weir/http/client/detail/proxy.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/combinators.hpp"

namespace weir::tests::cancel_sweep_client_test {
namespace {

struct Word {
  std::string text;
};

/// Serves one connection after the other until a handler has set `ended`.
Task<> serve_until_end(http::ServerState* server, tcp::Listener* listener, const bool* ended) {
  while (!*ended) {
    auto stream = co_await listener->accept();
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    auto place = server->connections().try_acquire_permit();
    co_await http::serve_connection(std::move(*place), std::move(*stream));
  }
}

Task<Result<>> write_late(http::BodySink& sink) {
  for (const std::string_view piece : {"\"la", "te\""}) {
    static_cast<void>(co_await sleep(short_delay));
    const Result<> written = co_await sink.write(piece);
    if (!written) co_return written;
  }
  co_return {};
}

Task<http::Response> echo(http::Request& request) {
  auto body = co_await request.body();
  co_return body ? http::text(*body) : http::Response(http::to_status(body.error()));
}

using Use = Task<> (*)(CancelInjector& injector, http::Client& client, std::string url);

/// Runs `use` with a server, and expects that another request is then answered as usual.
Task<> with_server(CancelInjector& injector, SweepEnvironment& env, Use use, bool http2 = false) {
  bool ended = false;
  http::Router router;
  router.get("/", [] { return http::stream(http::text_type, write_late); });
  router.post("/", echo);
  router.get("/end", [&ended] {
    ended = true;
    return http::text("end");
  });
  const auto plain = http2 ? http::PlainHttp2::only : http::PlainHttp2::off;
  http::ServerState server(env.loop(), router, {.plain_http2 = plain});
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  EXPECT_TRUE(listener);
  env.spawn(serve_until_end(&server, &*listener, &ended));
  const std::string origin = "http://127.0.0.1:" + std::to_string(listener->local_address().port());
  {
    http::ClientOptions options;
    options.plain_http2 = http2;
    http::Client client(std::move(options));
    co_await use(injector, client, origin + "/");
    auto last = co_await client.get(origin + "/end");
    EXPECT_TRUE(last);
    if (last) {
      const auto body = co_await last->body();
      EXPECT_TRUE(body && *body == "end");
    }
  }  // the server waits until the client has closed its connection
  co_await env.wait_until_idle();
}

Task<> expect_body(http::ClientResponse& response, std::string_view expected) {
  const auto body = co_await response.body();
  EXPECT_TRUE(body);
  if (body) {
    EXPECT_EQ(*body, expected);
  }
}

Task<> use_get(CancelInjector& injector, http::Client& client, std::string url) {
  auto response = co_await injector.run_with_cancel(client.get(url));
  if (succeeded(response)) co_await expect_body(*response, "\"late\"");
}
Task<> getting(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_get);
}

Task<> use_send(CancelInjector& injector, http::Client& client, std::string url) {
  http::ClientRequest request(http::Method::post, *http::Url::parse(url));
  request.set_body("text/plain", http::Body(http::StreamFunction(write_late)));
  auto response = co_await injector.run_with_cancel(client.send(std::move(request)));
  if (succeeded(response)) co_await expect_body(*response, "\"late\"");
}
Task<> sending(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_send);
}

Task<> use_post(CancelInjector& injector, http::Client& client, std::string url) {
  http::Body body(http::Literal("late"));
  auto posting = client.post(url, "text/plain", std::move(body));
  auto response = co_await injector.run_with_cancel(std::move(posting));
  if (succeeded(response)) co_await expect_body(*response, "late");
}
Task<> posting(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_post);
}

Task<> use_post_json(CancelInjector& injector, http::Client& client, std::string url) {
  const Word word{"late"};
  auto response = co_await injector.run_with_cancel(client.post(url, word));
  if (succeeded(response)) co_await expect_body(*response, "{\"text\":\"late\"}");
}
Task<> posting_json(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_post_json);
}

Task<> use_read(CancelInjector& injector, http::Client& client, std::string url) {
  auto response = co_await client.get(url);
  EXPECT_TRUE(response);
  if (!response) co_return;
  auto piece = co_await injector.run_with_cancel(response->read());
  std::string whole(succeeded(piece) ? to_text(*piece) : "");
  const auto rest = co_await response->body();
  EXPECT_TRUE(rest);
  EXPECT_EQ(whole + rest.value_or(""), "\"late\"");
}
Task<> reading_a_piece(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_read);
}

Task<> use_body(CancelInjector& injector, http::Client& client, std::string url) {
  auto response = co_await client.get(url);
  EXPECT_TRUE(response);
  if (!response) co_return;
  const auto body = co_await injector.run_with_cancel(response->body());
  if (succeeded(body)) {
    EXPECT_EQ(*body, "\"late\"");
  }
}
Task<> reading_a_body(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_body);
}

Task<> use_json(CancelInjector& injector, http::Client& client, std::string url) {
  auto response = co_await client.get(url);
  EXPECT_TRUE(response);
  if (!response) co_return;
  const auto text = co_await injector.run_with_cancel(response->json<std::string>());
  if (succeeded(text)) {
    EXPECT_EQ(*text, "late");
  }
}
Task<> reading_json(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_json);
}

Task<> read_body(http::ClientResponse& response) {
  co_await expect_body(response, "\"late\"");
}
Task<> get_with_cancel(CancelInjector& injector, http::Client& client, std::string_view url) {
  auto response = co_await injector.run_with_cancel(client.get(url));
  if (succeeded(response)) co_await expect_body(*response, "\"late\"");
}
Task<> use_queue(CancelInjector& injector, http::Client&, std::string url) {
  http::ClientOptions options;
  options.limits.connections_per_origin_max = 1;
  http::Client limited(std::move(options));
  auto first = co_await limited.get(url);
  EXPECT_TRUE(first);
  if (!first) co_return;
  auto reading = read_body(*first);
  auto waiting = get_with_cancel(injector, limited, url);
  const auto both = co_await all(std::move(reading), std::move(waiting));
  EXPECT_TRUE(both);
}
Task<> waiting_for_a_connection(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_queue);
}

/// Opens a tunnel late, and waits for the end of its connection.
Task<> serve_tunnel(tcp::Listener* listener) {
  constexpr std::string_view answer = "HTTP/1.1 200 OK\r\n\r\n";
  auto stream = co_await listener->accept();
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  const auto request = co_await stream->read();
  if (!request) co_return;
  static_cast<void>(co_await sleep(short_delay));
  const auto written = co_await stream->write(answer);
  if (!written) co_return;
  static_cast<void>(co_await stream->read());
}

Task<> opening_a_tunnel(CancelInjector& injector, SweepEnvironment& env) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  EXPECT_TRUE(listener);
  env.spawn(serve_tunnel(&*listener));
  {
    auto stream = co_await tcp::connect(Endpoint::loopback(listener->local_address().port()));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const http::Url url = *http::Url::parse("http://a.test/");
    const http::ClientOptions options;
    const auto request = http::connect_request(url, options.proxy);
    EXPECT_TRUE(request);
    if (!request) co_return;
    auto opening = http::open_tunnel(*stream, *request, options.limits);
    const auto opened = co_await injector.run_with_cancel(std::move(opening));
    static_cast<void>(succeeded(opened));
  }  // the proxy waits until its client has closed the connection
  co_await env.wait_until_idle();
}

Task<> getting_http2(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_get, true);
}
Task<> sending_http2(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_send, true);
}
Task<> reading_a_piece_of_http2(CancelInjector& injector, SweepEnvironment& env) {
  co_await with_server(injector, env, use_read, true);
}

Task<Result<>> echo_messages(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

Task<Result<>> send_and_read(http::WebSocket& socket) {
  WEIR_CO_TRY(co_await socket.send("hello"));
  WEIR_CO_TRY(const auto message, co_await socket.read());
  EXPECT_EQ(message.text(), "hello");
  co_return {};
}

Task<> open_a_websocket(CancelInjector& injector, SweepEnvironment& env, bool http2) {
  http::Router router;
  router.websocket("/ws", echo_messages);
  const auto plain = http2 ? http::PlainHttp2::only : http::PlainHttp2::off;
  http::ServerState server(env.loop(), router, {.plain_http2 = plain});
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  EXPECT_TRUE(listener);
  const std::string url =
      "ws://127.0.0.1:" + std::to_string(listener->local_address().port()) + "/ws";
  const auto use = [&](Scope& scope) -> Task<> {
    scope.spawn(http::accept_connections(scope, server, std::move(*listener)));
    {
      http::ClientOptions options;
      options.plain_http2 = http2;
      http::Client client(std::move(options));
      auto opening = client.websocket(url, send_and_read);
      std::ignore = succeeded(co_await injector.run_with_cancel(std::move(opening)));
    }
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, use);
}

Task<> opening_a_websocket(CancelInjector& injector, SweepEnvironment& env) {
  co_await open_a_websocket(injector, env, false);
}
Task<> opening_a_websocket_over_http2(CancelInjector& injector, SweepEnvironment& env) {
  co_await open_a_websocket(injector, env, true);
}

constexpr std::array of_clients = {
    SweepCase{"http::Client::get", getting},
    SweepCase{"http::Client::send", sending},
    SweepCase{"http::Client::post", posting},
    SweepCase{"http::Client::post", posting_json},
    SweepCase{"http::H1ClientExchange::run", sending},
    SweepCase{"http::ClientExchange::read", reading_a_piece},
    SweepCase{"http::ResponseSource::read", reading_a_piece_of_http2},
    SweepCase{"http::BodySink::write", sending_http2},
    SweepCase{"http::H2ClientExchange::run", getting_http2},
    SweepCase{"http::H2ClientExchange::run", sending_http2},
    SweepCase{"http::ClientExchange::read", reading_a_piece_of_http2},
    SweepCase{"http::ClientPool::acquire", waiting_for_a_connection},
    SweepCase{"http::ClientLease::connect", getting},
    SweepCase{"http::open_tunnel", opening_a_tunnel},
    SweepCase{"http::Client::websocket", opening_a_websocket},
    SweepCase{"http::Client::websocket", opening_a_websocket_over_http2},
    SweepCase{"http::H2ClientExchange::connect", opening_a_websocket_over_http2},
    SweepCase{"http::ClientPool::open_http1", opening_a_websocket},
    SweepCase{"http::open_websocket", opening_a_websocket},
    SweepCase{"http::use_websocket", opening_a_websocket},
    SweepCase{"http::ClientResponse::read", reading_a_piece},
    SweepCase{"http::ClientResponse::body", reading_a_body},
    SweepCase{"http::ClientResponse::json", reading_json},
};

class CancelSweepOfClients : public CancelSweep {};

TEST_P(CancelSweepOfClients, Requests) {
  sweep_all(of_clients);
}
TEST(CancelSweepInTheWorld, RequestsOfClients) {
  sweep_all_in_world(of_clients);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfClients, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_client_test
