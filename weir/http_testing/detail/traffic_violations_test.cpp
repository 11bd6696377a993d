// Tests of the checks of HttpTraffic: each deviation of a server is found, and excused only by the
// tolerance that allows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http_testing/detail/http_traffic.hpp"
#include "weir/sim/test/tiny_http_server.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::sim::traffic_violations_test {
namespace {

using Mode = HttpConnection::CloseMode;

enum class Deviation {
  none,
  wrong_status,  // 404 for the first request, and no body
  server_error,  // 500 for the first request
  wrong_body,    // status 200 with another body
  not_http,      // text that is not a response
  half_a_body,   // a part of the body, and the end
  half_a_head,   // a part of the head, and the end
  until_close,   // a body without a length, and the end
  no_response,   // the end
  silence,       // neither a response nor the end
  twice,         // each response twice
  keeps_open,    // no close after a request that closes the connection
  closes,        // a close after a request that does not close the connection
  announces,     // a wrong announcement of a close, or none
  interim,       // an interim response that the request does not expect
  late_interim,  // an interim response after the final one
};

/// One run with one connection.
struct Outcome {
  std::vector<HttpConnection> violating;  ///< a copy of the connection, if it has a violation
  std::string strict;
  std::string orderly_close;
  std::string early_close;
  std::string one_failure;
  std::size_t answered = 0;
  std::size_t served = 0;  ///< complete responses of the server
};

/// Returns the text to send instead of `right`, and whether to close after it.
std::pair<std::string, bool> deviate(Deviation deviation, const TinyRequest& request) {
  const std::string right = tiny_response(request);
  const std::string line = "Connection: close\r\n";
  const std::size_t headers = right.find('\n') + 1;
  switch (deviation) {
    case Deviation::wrong_status:
      return {tiny_response(404, "", false, request.closes), false};
    case Deviation::server_error:
      return {tiny_response(500, "", false, request.closes), false};
    case Deviation::wrong_body:
      return {tiny_response(200, "wrong"), false};
    case Deviation::not_http:
      return {"garbage\r\n\r\n", true};
    case Deviation::half_a_body:
      return {"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf", true};
    case Deviation::half_a_head:
      return {"HTTP/1.1 2", true};
    case Deviation::until_close:
      return {"HTTP/1.1 200 X\r\nA: b\r\n\r\nuntil close", true};
    case Deviation::no_response:
      return {"", true};
    case Deviation::twice:
      return {right + right, false};
    case Deviation::closes:
      return {right, true};
    case Deviation::announces:
      if (!request.closes) return {std::string(right).insert(headers, line), false};
      return {std::string(right).erase(headers, line.size()), false};
    case Deviation::interim:
      return {"HTTP/1.1 100 Continue\r\n\r\n" + right, false};
    case Deviation::late_interim:
      return {right + "HTTP/1.1 100 Continue\r\n\r\n", false};
    case Deviation::keeps_open:
    case Deviation::none:
    case Deviation::silence:
      break;
  }
  return {right, false};
}

/// Returns true if the deviation is in a body, which a response to HEAD does not have.
bool has_body(Deviation deviation) {
  return deviation == Deviation::wrong_body || deviation == Deviation::half_a_body ||
         deviation == Deviation::until_close;
}

Task<Result<>> serve_one(tcp::Stream peer, Deviation deviation, Outcome& outcome) {
  std::string text;
  bool first = true;
  bool continued = false;
  for (;;) {
    bool expects_continue = false;
    while (auto request = take_request(text, expects_continue)) {
      if (deviation == Deviation::silence) {
        std::ignore = co_await sleep(1h);
        co_return {};
      }
      const bool deviates = (first || deviation == Deviation::twice) &&
                            !(request->method == "HEAD" && has_body(deviation)) &&
                            !(request->expects_continue && deviation == Deviation::interim);
      auto [answer, closes] = deviate(deviates ? deviation : Deviation::none, *request);
      first = false;
      continued = false;
      if (auto written = co_await peer.write(answer); !written) co_return {};
      ++outcome.served;
      if (closes || (request->closes && deviation != Deviation::keeps_open)) co_return {};
    }
    if (expects_continue && !std::exchange(continued, true)) {
      if (auto written = co_await peer.write("HTTP/1.1 100 Continue\r\n\r\n"); !written) {
        co_return {};
      }
    }
    // A client that closes early may wait for more than the responses.
    const auto bytes = co_await timeout(30s, as_task(peer.read()));
    if (!bytes) co_return {};
    text += bytes->text();
  }
}

Task<Result<>> serve_tiny(Scope& peers, Deviation deviation, Outcome& outcome) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    peers.spawn(serve_one(std::move(peer), deviation, outcome));
  }
}

Outcome run_traffic(std::uint64_t seed, Deviation deviation, HttpTrafficOptions options,
                    bool listens = true) {
  Outcome outcome;
  World world({.seed = seed});
  Host& server = world.host("server");
  if (listens) {
    server.start_service([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(serve_tiny, deviation, std::ref(outcome));
    });
  }
  options.server = server.address(80);
  HttpTraffic traffic(options);
  world.host("client").start([&traffic](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  outcome.strict = traffic.find_violation();
  outcome.early_close = traffic.find_violation([&](const HttpConnection& connection) {
    outcome.violating.push_back(connection);
    return HttpTolerance::early_close;
  });
  outcome.orderly_close =
      traffic.find_violation([](const HttpConnection&) { return HttpTolerance::orderly_close; });
  outcome.one_failure =
      traffic.find_violation([](const HttpConnection&) { return HttpTolerance::one_failure; });
  EXPECT_EQ(traffic.find_violation([](const HttpConnection&) { return HttpTolerance::none; }),
            outcome.strict);
  outcome.answered = traffic.answered();
  for (const HttpConnection& each : outcome.violating) {
    std::size_t end = 0;
    EXPECT_EQ(traffic.end_of(each.local, 0), 0U);
    for (std::size_t count = 1; count <= each.requests.size() && each.connected; ++count) {
      end += each.requests[count - 1].text.size();
      EXPECT_EQ(traffic.end_of(each.local, count), end);
      EXPECT_EQ(traffic.end_of(each.local.with_port(1), count), 0U);
    }
    EXPECT_EQ(traffic.end_of(each.local, 1000), each.connected ? each.text.size() : 0U);
  }
  return outcome;
}

const HttpTrafficOptions one_request{.server = {}, .connections = 1, .requests_max = 1};
const HttpTrafficOptions some_requests{.server = {}, .connections = 1, .requests_max = 3};

/// Runs many connections and returns those with a violation. A client that closes early may miss
/// it.
std::vector<Outcome> find(Deviation deviation, const HttpTrafficOptions& options,
                          std::size_t least) {
  std::vector<Outcome> found;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Outcome outcome = run_traffic(seed, deviation, options);
    EXPECT_EQ(outcome.strict.empty(), outcome.violating.empty());
    if (!outcome.strict.empty()) found.push_back(std::move(outcome));
  }
  EXPECT_GE(found.size(), least);
  return found;
}

TEST(HttpTrafficViolations, ACorrectServerHasNone) {
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome outcome = run_traffic(seed, Deviation::none, {});
    EXPECT_EQ(outcome.strict, "") << "seed " << seed;
    EXPECT_EQ(outcome.early_close, "");
    EXPECT_LE(outcome.answered, outcome.served);
    EXPECT_GT(outcome.answered, outcome.served / 2);
    answered += outcome.answered;
  }
  EXPECT_GT(answered, 40U * 6 * 3) << "six connections with one to ten requests";
  EXPECT_LT(answered, 40U * 6 * 7);
}

TEST(HttpTrafficViolations, AWrongStatusIsExcusedInTheLastResponseOnly) {
  int excused = 0;
  for (const Outcome& each : find(Deviation::wrong_status, some_requests, 25)) {
    const HttpConnection& connection = each.violating[0];
    const std::string line = connection.text.substr(0, connection.text.find("\r\n"));
    EXPECT_EQ(each.strict, "connection 0: " + line + ": answered by 404 ");
    const bool last = connection.answers().size() == 1;
    EXPECT_EQ(each.early_close, last ? "" : each.strict);
    EXPECT_EQ(each.orderly_close, each.early_close);
    EXPECT_EQ(each.one_failure, each.early_close);
    excused += last ? 1 : 0;
  }
  EXPECT_GT(excused, 3);
}

TEST(HttpTrafficViolations, AServerErrorIsExcusedByOneFailure) {
  int excused = 0;
  for (const Outcome& each : find(Deviation::server_error, some_requests, 25)) {
    EXPECT_THAT(each.strict, testing::HasSubstr(": answered by 500 "));
    EXPECT_EQ(each.one_failure, "");
    const bool last = each.violating[0].answers().size() == 1;
    EXPECT_EQ(each.early_close, last ? "" : each.strict);
    excused += last ? 0 : 1;
  }
  EXPECT_GT(excused, 3);
}

TEST(HttpTrafficViolations, AWrongBodyIsNeverExcused) {
  for (const Outcome& each : find(Deviation::wrong_body, one_request, 20)) {
    EXPECT_THAT(each.strict, testing::EndsWith(": answered by 200 wrong"));
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
  }
}

TEST(HttpTrafficViolations, StrayBytesAreNeverExcused) {
  for (const Outcome& each : find(Deviation::not_http, one_request, 25)) {
    EXPECT_EQ(each.strict, "connection 0: not HTTP: garbage\r\n\r\n");
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
  }
}

TEST(HttpTrafficViolations, AnIncompleteResponseIsExcusedByAnEarlyClose) {
  for (const Deviation deviation : {Deviation::half_a_body, Deviation::half_a_head}) {
    for (const Outcome& each : find(deviation, one_request, 20)) {
      EXPECT_EQ(each.strict, "connection 0: an incomplete response");
      EXPECT_EQ(each.orderly_close, each.strict);
      EXPECT_EQ(each.early_close, "");
      EXPECT_EQ(each.one_failure, "");
    }
  }
}

TEST(HttpTrafficViolations, AResponseUntilTheCloseIsNeverExcused) {
  for (const Outcome& each : find(Deviation::until_close, one_request, 20)) {
    EXPECT_EQ(each.strict, "connection 0: an incomplete response");
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
  }
}

TEST(HttpTrafficViolations, AMissingResponseIsExcusedByAnEarlyClose) {
  for (const Outcome& each : find(Deviation::no_response, some_requests, 25)) {
    const HttpConnection& connection = each.violating[0];
    EXPECT_EQ(each.strict, "connection 0: answered 0 of " +
                               std::to_string(connection.requests.size()) + " requests, then " +
                               connection.read_error.message());
    EXPECT_TRUE(connection.read_error == Errc::end_of_stream ||
                connection.read_error == system_error(ECONNRESET));
    EXPECT_EQ(each.orderly_close, "");
    EXPECT_EQ(each.early_close, "");
    EXPECT_EQ(each.one_failure, "");
    EXPECT_EQ(each.answered, 0U);
  }
}

TEST(HttpTrafficViolations, SilenceIsNeverExcused) {
  for (const Outcome& each : find(Deviation::silence, one_request, 30)) {
    const HttpConnection& connection = each.violating[0];
    EXPECT_EQ(each.strict, "connection 0: neither answered nor closed");
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
    EXPECT_TRUE(connection.timed_out);
    EXPECT_GE(connection.ended_at - connection.started_at, 10min);
    EXPECT_LT(connection.ended_at - connection.started_at, 11min);
  }
}

TEST(HttpTrafficViolations, ADuplicateIsNeverExcused) {
  for (const Outcome& each : find(Deviation::twice, one_request, 20)) {
    EXPECT_EQ(each.strict, "connection 0: more answers than requests");
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
  }
}

TEST(HttpTrafficViolations, AConnectionThatIsNotClosedIsFound) {
  for (const Outcome& each : find(Deviation::keeps_open, one_request, 4)) {
    EXPECT_EQ(each.strict, "connection 0: not closed after the last response");
    EXPECT_TRUE(each.violating[0].requests[0].closes_connection);
    EXPECT_EQ(each.early_close, "");
    EXPECT_EQ(each.one_failure, "");
  }
}

TEST(HttpTrafficViolations, AConnectionThatIsNotKeptOpenIsFound) {
  for (const Outcome& each : find(Deviation::closes, one_request, 8)) {
    EXPECT_EQ(each.strict, "connection 0: not kept open after the last response: " +
                               make_error_code(Errc::end_of_stream).message());
    EXPECT_FALSE(each.violating[0].requests[0].closes_connection);
    EXPECT_EQ(each.violating[0].close_mode, Mode::lingers);
    EXPECT_EQ(each.early_close, "");
  }
}

TEST(HttpTrafficViolations, AWrongAnnouncementOfACloseIsFound) {
  std::set<bool> closes;
  for (const Outcome& each : find(Deviation::announces, one_request, 25)) {
    const bool closing = each.violating[0].requests[0].closes_connection;
    const std::string announced = closing ? "" : "close";
    EXPECT_THAT(each.strict, testing::EndsWith(": wrong Connection header: " + announced));
    EXPECT_EQ(each.early_close, "");
    closes.insert(closing);
  }
  EXPECT_EQ(closes.size(), 2U);
}

TEST(HttpTrafficViolations, AnUnexpectedInterimResponseIsNeverExcused) {
  std::vector<Outcome> found = find(Deviation::interim, one_request, 25);
  std::ranges::move(find(Deviation::late_interim, one_request, 25), std::back_inserter(found));
  for (const Outcome& each : found) {
    EXPECT_EQ(each.strict, "connection 0: an interim response that no request expects");
    EXPECT_EQ(each.early_close, each.strict);
    EXPECT_EQ(each.one_failure, each.strict);
  }
}

TEST(HttpTrafficViolations, ARefusedConnectionIsFound) {
  const Outcome outcome = run_traffic(1, Deviation::none, one_request, false);
  EXPECT_EQ(outcome.strict,
            "connection 0: answered 0 of 1 requests, then " + system_error(ECONNREFUSED).message());
  ASSERT_EQ(outcome.violating.size(), 1U);
  EXPECT_FALSE(outcome.violating[0].connected);
  EXPECT_FALSE(outcome.violating[0].timed_out);
  EXPECT_NE(outcome.violating[0].ended_at, never);
}

TEST(HttpTrafficViolations, TheFirstViolatingConnectionIsNamed) {
  const Outcome outcome =
      run_traffic(2, Deviation::no_response, {.server = {}, .connections = 4, .requests_max = 2});
  EXPECT_THAT(outcome.strict, testing::StartsWith("connection "));
  EXPECT_EQ(outcome.early_close, "");
  EXPECT_GE(outcome.violating.size(), 2U);
  EXPECT_LE(outcome.violating.size(), 4U);
}

/// Describes the answers of a connection with one HEAD request: "200 body", with '-' if it is
/// incomplete.
std::string answers_to_head(std::string_view received) {
  HttpConnection connection;
  HttpRequest& request = connection.requests.emplace_back();
  request.method = "HEAD";
  connection.received = received;
  std::string text;
  for (const HttpResponse& each : connection.answers()) {
    text += std::to_string(each.status) + " " + each.body + (each.complete ? "|" : "-|");
  }
  return text;
}

TEST(HttpTrafficAnswers, AreTheFinalResponses) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string rejection = "HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(answers_to_head(""), "");
  EXPECT_EQ(answers_to_head(ok), "200 |");
  EXPECT_EQ(answers_to_head(interim), "");
  EXPECT_EQ(answers_to_head(interim + ok), "200 |");
  EXPECT_EQ(answers_to_head(ok + interim), "200 |");
  EXPECT_EQ(answers_to_head(interim.substr(0, 12)), "0 -|");
  EXPECT_EQ(answers_to_head(rejection + "later"), "503 later|")
      << "it is sent before the method is known";
  EXPECT_EQ(answers_to_head(rejection + "late"), "503 late-|");
}

// A server without responses makes every plan visible.
TEST(HttpTrafficPlans, AreDrawnForEachConnection) {
  std::multiset<Mode> modes;
  std::set<std::size_t> counts;
  std::set<Duration> starts;
  std::size_t closing = 0;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Outcome outcome = run_traffic(seed, Deviation::no_response, {});
    for (const HttpConnection& each : outcome.violating) {
      ++all;
      modes.insert(each.close_mode);
      counts.insert(each.requests.size());
      std::string text;
      for (std::size_t number = 0; number < each.requests.size(); ++number) {
        text += each.requests[number].text;
        const bool last = number + 1 == each.requests.size();
        EXPECT_TRUE(last || !each.requests[number].closes_connection);
        closing += each.requests[number].closes_connection ? 1 : 0;
      }
      EXPECT_EQ(each.text, text);
      EXPECT_TRUE(each.connected);
      EXPECT_NE(each.local, Endpoint());
      EXPECT_LT(each.close_after_bytes, 400U);
      if (each.close_mode != Mode::early) {
        EXPECT_EQ(each.close_after_bytes, 0U);
      }
      starts.insert(each.started_at.time_since_epoch() - 1h);
    }
  }
  EXPECT_GT(all, 340U);
  EXPECT_EQ(counts, (std::set<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  const auto share = [&](Mode mode) {
    return static_cast<double>(modes.count(mode)) / static_cast<double>(all);
  };
  EXPECT_NEAR(share(Mode::half_close), 0.2, 0.06);
  EXPECT_NEAR(share(Mode::early), 0.12, 0.05);
  EXPECT_NEAR(share(Mode::lingers), 0.544, 0.08);
  EXPECT_NEAR(share(Mode::after_responses), 0.136, 0.05);
  EXPECT_NEAR(static_cast<double>(closing) / static_cast<double>(all), 0.3, 0.08);
  EXPECT_GE(*starts.begin(), 500ms);
  EXPECT_LT(*starts.begin(), 550ms);
  EXPECT_GT(*starts.rbegin(), 1450ms);
  EXPECT_LT(*starts.rbegin(), 1600ms);
  EXPECT_GT(starts.size(), 300U);
}

/// Reads until the client ends the stream. Records the time from the last bytes to the end.
Task<> read_silently(tcp::Stream peer, std::vector<Duration>& pauses) {
  const Context own = co_await this_context();
  Instant last = never;
  for (;;) {
    const auto bytes = co_await peer.read();
    const Instant now = own.loop->platform().now();
    if (bytes) {
      last = now;
      continue;
    }
    if (bytes.error() == Errc::end_of_stream && last != never) pauses.push_back(now - last);
    co_return;
  }
}

Task<Result<>> serve_silently(Scope& peers, std::vector<Duration>& pauses) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    peers.spawn(read_silently(std::move(peer), pauses));
  }
}

// A server must handle a request and the half-close in one turn, and also in two.
TEST(HttpTrafficPlans, SomeClientsHalfCloseImmediatelyAndOthersAfterAPause) {
  std::vector<Duration> pauses;
  World world({.seed = 5, .jitter = no_jitter});
  Host& server = world.host("server");
  server.start_service([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(serve_silently, std::ref(pauses));
  });
  HttpTraffic traffic({.server = server.address(80), .connections = 300, .requests_max = 1});
  world.host("client").start([&traffic](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&traffic](Scope& scope) {
      return traffic.run(scope);
    });
  });
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  // The other clients wait for a response, for minutes.
  std::erase_if(pauses, [](Duration each) { return each > 1s; });
  const auto immediate = std::ranges::count(pauses, Duration{});
  const auto half_closes = static_cast<std::ptrdiff_t>(pauses.size());
  EXPECT_NEAR(static_cast<double>(half_closes), 60, 20) << "one connection in five";
  EXPECT_GT(immediate, half_closes / 2);
  EXPECT_GT(half_closes - immediate, half_closes / 10);
}

TEST(HttpTrafficPlans, ACancelledClientClosesItsConnections) {
  std::vector<Duration> pauses;
  World world({.seed = 5, .jitter = no_jitter});
  Host& server = world.host("server");
  Host& client = world.host("client");
  server.start_service([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(serve_silently, std::ref(pauses));
  });
  HttpTraffic traffic({.server = server.address(80), .connections = 20});
  const Instant start = world.now();
  client.start([&traffic](loop::Platform& host) {
    const auto run_for_a_minute = [&traffic](Scope& scope) -> Task<> {
      co_await traffic.run(scope);
      std::ignore = co_await sleep(1min);
      scope.cancel();
    };
    return Runtime(host, quiet()).run_on_each_core([&run_for_a_minute](Scope&) -> Task<> {
      std::ignore = co_await with_scope(OnFailure::isolate, run_for_a_minute);
    });
  });
  world.schedule(59s, [&] { EXPECT_GT(client.connections().size(), 10U); });
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(traffic.answered(), 0U);
  std::size_t cancelled = 0;
  static_cast<void>(traffic.find_violation([&](const HttpConnection& connection) {
    // This server closes after a half-close.
    if (connection.close_mode == Mode::half_close) return HttpTolerance::early_close;
    ++cancelled;
    EXPECT_FALSE(connection.timed_out);
    EXPECT_EQ(connection.read_error, Errc::cancelled);
    EXPECT_EQ(connection.ended_at - start, 1min);
    return HttpTolerance::early_close;
  }));
  EXPECT_GT(cancelled, 10U);
  EXPECT_LE(cancelled, 20U);
}

TEST(HttpTrafficPlans, HaveDocumentedDefaults) {
  const HttpTrafficOptions options;
  EXPECT_EQ(options.connections, 6U);
  EXPECT_EQ(options.requests_max, 10U);
  const HttpConnection connection;
  EXPECT_EQ(connection.close_mode, Mode::after_responses);
  EXPECT_FALSE(connection.connected);
  EXPECT_FALSE(connection.timed_out);
  EXPECT_EQ(connection.close_after_bytes, 0U);
}

}  // namespace
}  // namespace weir::sim::traffic_violations_test
