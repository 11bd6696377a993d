// Sends one conversation of HTTP/2 to a server on every backend: in one piece, byte by byte, and
// cut in two at each byte. The answers never depend on the cuts.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/server.hpp"
#include "weir/http.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests::http2_wire_test {
namespace {

namespace frames = http::frames;
using namespace http::frames;
using namespace std::chrono_literals;

Task<http::Response> echo(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(std::string(*body));
}

constexpr std::size_t answers = 4;

/// Returns frames of each kind. The server answers on `answers` streams.
std::string conversation() {
  const std::string head = block({{":method", "POST"},
                                  {":scheme", "http"},
                                  {":path", "/echo"},
                                  {":authority", "a"},
                                  {"x-long", std::string(40, 'v')}});
  return preface(setting(http::SettingId::initial_window_size, 70'000)) + frames::get(1, "/") +
         headers(3, head.substr(0, 20), 0) + continuation(3, head.substr(20)) + data(3, "hel") +
         ping() + frame(http::FrameType::priority, 0, 5, u32(3) + "\x10") +
         data(3, std::string("\2lo\0\0", 5), http::FrameFlag::padded) + headers(3, "") +
         frames::get(5, "/missing") + frames::post(7, "/echo") + rst_stream(7) +
         window_update(0, 1) + headers(9, block({{":method", "GET"}})) +
         frame(static_cast<http::FrameType>(99), 0, 0, "unknown") + frames::get(11, "/late") +
         goaway(0);
}

/// Returns the lines of each stream in their order, and those of the connection. The order of
/// streams depends on time.
std::vector<std::string> sorted(const std::string& lines) {
  std::vector<std::string> all;
  std::istringstream input(lines);
  for (std::string line; std::getline(input, line);) all.push_back(line);
  const auto stream_of = [](const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    unsigned stream = 0;
    words >> kind >> stream;
    return kind == "head" || kind == "data" || kind == "reset" ? stream : 0;
  };
  std::map<unsigned, std::vector<std::string>> of_streams;
  for (std::string& each : all) of_streams[stream_of(each)].push_back(std::move(each));
  all.clear();
  for (auto& [stream, its_lines] : of_streams) {
    all.insert(all.end(), its_lines.begin(), its_lines.end());
  }
  return all;
}

/// Sends the pieces that `cuts` end, with a turn between them, and reads until the server closes.
Task<std::string> talk(Endpoint server, std::string_view input, std::vector<std::size_t> cuts) {
  auto stream = co_await tcp::connect(server);
  if (!stream) co_return "no connection";
  cuts.push_back(input.size());
  std::size_t at = 0;
  for (const std::size_t end : cuts) {
    const auto sent = co_await stream->write(input.substr(at, end - at));
    if (!sent) co_return "not sent";
    at = end;
    for (int turns = 0; turns < 3; ++turns) co_await yield();
  }
  const IoOptions wait{.timeout = 20s};
  std::string received;
  bool closing = false;
  for (;;) {
    if (!closing && ended_streams(received) == answers) {
      closing = true;
      const std::string invalid = frame(http::FrameType::ping, 0, 0, "7 bytes");
      if (!co_await stream->write(invalid)) break;
    }
    const auto bytes = co_await stream->read(wait);
    if (!bytes) break;
    received += bytes->text();
  }
  Receiver receiver;
  co_return receiver.read(received);
}

Task<> check_all(Scope& scope, std::size_t step) {
  const auto port = Endpoint::loopback(0);
  http::Router routes;
  routes.get("/", [] { return http::text("hello"); });
  routes.get("/late", []() -> Task<http::Response> {
    std::ignore = co_await sleep(1ms);
    co_return http::text("late");
  });
  routes.post("/echo", echo);
  const http::ServeOptions options{.plain_http2 = http::PlainHttp2::prior_knowledge};
  http::ServerState server(scope.loop(), routes, options);
  auto listener = co_await tcp::listen(port);
  EXPECT_TRUE(listener);
  if (!listener) co_return;
  const Endpoint address = Endpoint::loopback(listener->local_address().port());
  const auto serve = [&](Scope& own) -> Task<> {
    for (;;) {
      auto stream = co_await listener->accept();
      if (!stream) co_return;
      auto permit = server.connections().try_acquire_permit();
      own.spawn(http::serve_connection(std::move(*permit), std::move(*stream)));
    }
  };
  const auto all = [&](Scope& own) -> Task<> {
    own.spawn(serve(own));
    const std::string input = conversation();
    std::vector<std::size_t> cuts;
    const std::string whole = co_await talk(address, input, cuts);
    const auto expected = sorted(whole);
    EXPECT_GE(expected.size(), 12U) << testing::PrintToString(expected);
    std::vector<std::size_t> every(input.size() - 1);
    for (std::size_t at = 0; at < every.size(); ++at) every[at] = at + 1;
    const std::string bytewise = co_await talk(address, input, every);
    EXPECT_EQ(sorted(bytewise), expected);
    for (std::size_t at = 1; at < input.size() && !testing::Test::HasFailure(); at += step) {
      cuts.assign(1, at);
      const std::string cut = co_await talk(address, input, cuts);
      EXPECT_EQ(sorted(cut), expected) << "cut at " << at;
    }
    own.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, all);
}

class Http2Wire : public EachBackend {};

TEST_P(Http2Wire, AnswersDoNotDependOnCuts) {
  RuntimeOptions options;
  options.cores = 1;
  options.backend = to_backend_choice(GetParam());
  options.pin = options.handle_signals = options.announce = false;
  Runtime runtime(options);
  EXPECT_EQ(runtime.run_on_each_core([](Scope& scope) -> Task<Result<>> {
    co_await check_all(scope, 1);
    co_return {};
  }),
            0);
}

INSTANTIATE_TEST_SUITE_P(On, Http2Wire, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::http2_wire_test
