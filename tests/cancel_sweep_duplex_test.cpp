// Cancels responses that are written while their requests arrive, at any time, on every backend and
// in the World; see tests/cancel_sweep.hpp.
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/http.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/test/h2_client_fixture.hpp"

namespace weir::tests::cancel_sweep_duplex_test {
namespace {

namespace frames = http::frames;

Task<Result<>> echo(http::Request& request, http::BodySink& sink) {
  for (;;) {
    WEIR_CO_TRY(const Bytes piece, co_await request.read());
    if (piece.empty()) co_return {};
    WEIR_CO_TRY(co_await sink.write(piece));
  }
}

/// Sends both parts, and reads until the response has ended.
Task<> ask(tcp::Stream stream, std::string first, std::string second,
           bool (*ended)(const std::string&)) {
  std::string received;
  auto sent = co_await stream.write(first);
  if (sent) std::ignore = co_await sleep(short_delay);
  if (sent) sent = co_await stream.write(second);
  while (sent && !ended(received)) {
    const auto bytes = co_await stream.read();
    if (!bytes) break;
    received += bytes->text();
  }
}

/// Serves one connection, and cancels that.
Task<> serve(CancelInjector& injector, SweepEnvironment& env, http::PlainHttp2 http2,
             std::string first, std::string second, bool (*ended)(const std::string&)) {
  http::Router routes;
  routes.post("/",
              [](http::Request& request) { return http::duplex(request, http::text_type, echo); });
  http::ServerState server(env.loop(), routes, {.plain_http2 = http2});
  Pair pair = co_await connect_pair();
  env.spawn(ask(std::move(pair.far), std::move(first), std::move(second), ended));
  auto permit = server.connections().try_acquire_permit();
  auto serving = http::serve_connection(std::move(*permit), std::move(pair.near));
  co_await injector.run_with_cancel(std::move(serving));
  co_await env.wait_until_idle();
  EXPECT_EQ(server.counters().connections_open.value(), 0U);
}

Task<> serving_http1(CancelInjector& injector, SweepEnvironment& env) {
  co_await serve(injector, env, http::PlainHttp2::off,
                 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                 "Connection: close\r\n\r\n3\r\nabc\r\n",
                 "3\r\ndef\r\n0\r\n\r\n",
                 [](const std::string& received) { return received.ends_with("0\r\n\r\n"); });
}

Task<> serving_http2(CancelInjector& injector, SweepEnvironment& env) {
  co_await serve(injector, env, http::PlainHttp2::only,
                 frames::preface() + frames::post(1, "/") + frames::data(1, "abc"),
                 frames::data(1, "def", http::FrameFlag::end_stream),
                 [](const std::string& received) { return frames::ended_streams(received) > 0; });
}

constexpr std::array of_duplex = {
    SweepCase{"http::RequestBody::read_piece", serving_http1},
    SweepCase{"http::ResponseBody::send", serving_http2},
};

class CancelSweepOfDuplex : public CancelSweep {};

TEST_P(CancelSweepOfDuplex, Responses) {
  sweep_all(of_duplex);
}
TEST(CancelSweepInTheWorld, DuplexResponses) {
  sweep_all_in_world(of_duplex);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfDuplex, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_duplex_test
