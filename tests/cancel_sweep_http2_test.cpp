// Cancels connections of HTTP/2 at any time on every real backend; see tests/cancel_sweep.hpp.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/http.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/test/h2_client_fixture.hpp"

namespace weir::tests::cancel_sweep_http2_test {
namespace {

namespace frames = http::frames;
using namespace http::frames;

Task<http::Response> late() {
  std::ignore = co_await sleep(short_delay);
  co_return http::text("late");
}

Task<http::Response> echo(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(std::string(*body));
}

Task<http::Response> count(http::Request& request) {
  std::size_t size = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::Response(http::to_status(piece.error()));
    if (piece->empty()) break;
    size += piece->size();
  }
  co_return http::text(std::to_string(size));
}

Task<Result<>> write_late(http::BodySink& sink) {
  for (const std::string_view piece : {"la", "te"}) {
    std::ignore = co_await sleep(short_delay);
    const Result<> written = co_await sink.write(piece);
    if (!written) co_return written;
  }
  co_return {};
}

void add_routes(http::Router& routes) {
  routes.get("/", [] { return http::text("hello"); });
  routes.get("/late", late);
  routes.post("/echo", echo);
  routes.post("/count", count);
  routes.post("/", [] { return http::text("hello"); });
  routes.get("/stream", [] { return http::stream(http::text_type, write_late); });
  routes.get("/large", [] { return http::text(std::string(300'000, 'x')); });
}

/// Sends frames, and reads until `ends` streams have ended.
Task<> ask(tcp::Stream stream, std::string first, std::string second, std::size_t ends) {
  std::string received;
  auto sent = co_await stream.write(first);
  if (sent) std::ignore = co_await sleep(short_delay);
  if (sent) sent = co_await stream.write(second);
  while (sent && ended_streams(received) < ends) {
    const auto bytes = co_await stream.read();
    if (!bytes) break;
    received += bytes->text();
  }
}

/// Serves one connection, and cancels that. The client leaves when `ends` streams have ended.
Task<> serve(CancelInjector& injector, SweepEnvironment& env, std::string first, std::string second,
             std::size_t ends) {
  http::Router routes;
  add_routes(routes);
  http::Limits limits;
  limits.h2.work.burst = 200;
  limits.h2.work.delay = short_delay;
  {
    const http::ServeOptions options{.limits = limits, .plain_http2 = http::PlainHttp2::only};
    http::ServerState server(env.loop(), routes, options);
    Pair pair = co_await connect_pair();
    env.spawn(ask(std::move(pair.far), std::move(first), std::move(second), ends));
    auto permit = server.connections().try_acquire_permit();
    auto serving = http::serve_connection(std::move(*permit), std::move(pair.near));
    co_await injector.run_with_cancel(std::move(serving));
    co_await env.wait_until_idle();
    EXPECT_EQ(server.counters().connections_open.value(), 0U);
  }
}

Task<> serving_all_kinds(CancelInjector& injector, SweepEnvironment& env) {
  std::string first = preface() + frames::get(1, "/") + frames::get(3, "/late") +
                      frames::post(5, "/echo") + frames::post(7, "/count") +
                      frames::get(9, "/stream") + frames::post(11, "/") + data(5, "hel") +
                      data(7, "hel") + frames::get(13, "/late") + rst_stream(13);
  std::string second = data(5, "lo", http::FrameFlag::end_stream) + headers(7, "") +
                       data(11, "unread", http::FrameFlag::end_stream);
  co_await serve(injector, env, std::move(first), std::move(second), 6);
}

Task<> serving_large_bodies(CancelInjector& injector, SweepEnvironment& env) {
  std::string first = preface() + frames::get(1, "/large") + frames::get(3, "/large");
  std::string second =
      window_update(0, 1'000'000) + window_update(1, 300'000) + window_update(3, 300'000);
  co_await serve(injector, env, std::move(first), std::move(second), 2);
}

Task<> delaying_floods(CancelInjector& injector, SweepEnvironment& env) {
  std::string first = preface();
  for (int count = 0; count < 300; ++count) first += ping();
  std::string second = frames::get(1, "/");
  co_await serve(injector, env, std::move(first), std::move(second), 1);
}

constexpr std::array of_http2 = {
    SweepCase{"http::H2Connection::run", serving_all_kinds},
    SweepCase{"http::H2Connection::write_all", serving_large_bodies},
    SweepCase{"http::H2Connection::read_all", delaying_floods},
};

class CancelSweepOfHttp2 : public CancelSweep {};

TEST_P(CancelSweepOfHttp2, Connections) {
  sweep_all(of_http2);
}
TEST(CancelSweepInTheWorld, ConnectionsOfHttp2) {
  sweep_all_in_world(of_http2);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfHttp2, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_http2_test
