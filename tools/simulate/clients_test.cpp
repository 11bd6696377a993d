// Tests that the clients of the scenarios find each wrong answer of a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tools/simulate/attackers.hpp"
#include "tools/simulate/one_shot_clients.hpp"
#include "tools/simulate/page_traffic.hpp"
#include "tools/simulate/regular_clients.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/test/tiny_http_server.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate::clients_test {
namespace {

using sim::tiny_response;
using sim::TinyRequest;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The response to a request, and whether the server then closes the connection.
struct Reaction {
  std::string text;
  bool closes = false;
};
/// The behaviour of a server for request `number` (from 0) of a connection.
using React = std::function<Reaction(const TinyRequest& request, int number)>;

Task<> serve_one(tcp::Stream peer, const React& react) {
  std::string text;
  for (int number = 0;;) {
    bool expects_continue = false;
    while (const auto request = sim::take_request(text, expects_continue)) {
      const Reaction reaction = react(*request, number++);
      if (auto written = co_await peer.write(reaction.text); !written) co_return;
      if (reaction.closes) co_return;
    }
    const auto bytes = co_await peer.read();
    if (!bytes) co_return;
    text += bytes->text();
  }
}

Task<Result<>> serve_all(Scope& scope, const React& react) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    scope.spawn(serve_one(std::move(peer), react));
  }
}

/// Runs clients with a server of this behaviour; without one, no server listens.
template <class Clients, class Options>
void run_clients(Clients& clients, Options& options, sim::World& world, const React& react) {
  sim::Host& server = world.host("server");
  options.server = server.address(80);
  if (react) {
    server.start_service([&react](loop::Platform& host) {
      return Runtime(host, {.announce = false}).run_on_each_core(serve_all, std::cref(react));
    });
  }
  clients.emplace(options);
  world.host("clients").start([&clients](loop::Platform& host) {
    return Runtime(host, {.announce = false}).run_on_each_core([&clients](Scope& scope) {
      return clients->run(scope);
    });
  });
  if constexpr (requires { clients->stop(); }) {
    world.schedule(3s, [&clients] { clients->stop(); });
  }
  const sim::WorldReport report = world.run_until_done(24h);
  EXPECT_TRUE(report.ok()) << report.text();
}

/// Returns a response of a process for OneShotClients. It announces the close of the connection.
Reaction who(const TinyRequest& request, const std::string& process, const std::string& id) {
  std::string text = tiny_response(200, "who " + process + " " + id + "\n");
  if (request.closes) text.insert(text.find("\r\n") + 2, "Connection: close\r\n");
  return {std::move(text), request.closes};
}

struct Visited {
  std::string violation;
  std::size_t answered = 0;
  std::size_t answered_by_newer = 0;
};
Visited visit(const React& react) {
  sim::World world({.seed = 1});
  OneShotClientsOptions options;
  std::optional<OneShotClients> clients;
  run_clients(clients, options, world, react);
  const auto tolerated = [](const OneShotConnection&) { return true; };
  EXPECT_EQ(clients->find_violation(tolerated), "");
  return {clients->find_violation([](const OneShotConnection& each) {
            EXPECT_GE(each.ended, each.begun);
            return false;
          }),
          clients->answered(), clients->answered_by_newer()};
}

TEST(OneShotClientsTest, FindNothingWrongWithARightServer) {
  for (const std::string process : {"0", "7"}) {
    const Visited visited = visit(
        [&](const TinyRequest& request, int) { return who(request, process, request.path[1]); });
    EXPECT_EQ(visited.violation, "");
    EXPECT_GT(visited.answered, 50U);
    EXPECT_EQ(visited.answered_by_newer, process == "7" ? visited.answered : 0U);
  }
}

TEST(OneShotClientsTest, FindEachWrongAnswer) {
  const auto wrong = [](const React& react) { return visit(react).violation; };
  EXPECT_THAT(wrong([](const TinyRequest& request, int) { return who(request, "0", "9"); }),
              HasSubstr(": request 0 answered by 200 who 0 9\n"));
  EXPECT_THAT(wrong([](const TinyRequest& request, int number) {
                return who(request, std::to_string(number), request.path[1]);
              }),
              EndsWith(": request 1 answered by 200 who 1 1\n"))
      << "two processes on one connection";
  EXPECT_THAT(wrong([](const TinyRequest&, int) { return Reaction{tiny_response(500, ""), true}; }),
              EndsWith(": request 0 answered by 500 "));
  EXPECT_EQ(wrong([](const TinyRequest&, int) { return Reaction{"", true}; }),
            "a connection that began 0 ms after the first: closed without an answer");
  EXPECT_THAT(wrong([](const TinyRequest&, int) {
                return Reaction{"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nwho 0", true};
              }),
              EndsWith(": request 0 answered by 200 who 0"));
  EXPECT_THAT(wrong([](const TinyRequest& request, int) {
                return Reaction{tiny_response(200, "who 0 " + request.path[1] + "\n"),
                                request.closes};
              }),
              testing::ContainsRegex(": [1-4] answers to [1-4] requests$"))
      << "the close was not announced";
  EXPECT_THAT(wrong(nullptr), EndsWith(": not connected: " + system_error(ECONNREFUSED).message()));
}

TEST(OneShotClientsTest, NameTheProcessThatClosesBeforeTheLastAnswer) {
  sim::World world({.seed = 1});
  OneShotClientsOptions options;
  std::optional<OneShotClients> clients;
  run_clients(clients, options, world, [](TinyRequest request, int) {
    request.closes = true;
    return who(request, "7", request.path[1]);
  });
  std::size_t closed = 0;
  const std::string violation = clients->find_violation([&closed](const OneShotConnection& each) {
    EXPECT_EQ(each.closed_by, 7U);
    ++closed;
    return closed < 10;
  });
  EXPECT_THAT(violation, testing::ContainsRegex(": 1 answers to [2-4] requests$"));
  EXPECT_EQ(closed, 10U);
}

struct Requested {
  std::string violation;
  std::size_t answered = 0;
};
Requested request_regularly(const React& react, RegularClientsOptions options = {}) {
  sim::World world({.seed = 1});
  std::optional<RegularClients> clients;
  run_clients(clients, options, world, react);
  return {clients->violation(), clients->answered()};
}

TEST(RegularClientsTest, FindEachWrongAnswer) {
  const Requested right = request_regularly(
      [](const TinyRequest& request, int) { return Reaction{tiny_response(request)}; });
  EXPECT_EQ(right.violation, "");
  EXPECT_GT(right.answered, 20U);
  const auto wrong = [](const React& react) { return request_regularly(react).violation; };
  EXPECT_THAT(wrong([](const TinyRequest&, int) { return Reaction{tiny_response(503, "")}; }),
              EndsWith(": answered by 503"));
  EXPECT_THAT(wrong([](const TinyRequest& request, int) {
                return Reaction{tiny_response(200, "x", request.method == "HEAD")};
              }),
              EndsWith(": answered by 200"));
  EXPECT_THAT(wrong([](const TinyRequest&, int) { return Reaction{"", true}; }),
              testing::AnyOf(EndsWith(make_error_code(Errc::end_of_stream).message()),
                             EndsWith(system_error(ECONNRESET).message())));
  EXPECT_THAT(wrong([](const TinyRequest&, int) { return Reaction{""}; }),
              EndsWith(": " + make_error_code(Errc::timed_out).message()));
  EXPECT_EQ(wrong(nullptr), "not connected: " + system_error(ECONNREFUSED).message());
  const React without_date = [](const TinyRequest& request, int) {
    return Reaction{tiny_response(request)};
  };
  EXPECT_THAT(request_regularly(without_date, {.checks_date = true}).violation,
              EndsWith(": wrong date "));
  EXPECT_THAT(wrong([](const TinyRequest& request, int) {
                return Reaction{tiny_response(request) + tiny_response(request)};
              }),
              EndsWith(": " + make_error_code(Errc::bad_input).message()))
      << "two responses";
  for (const char* const text : {"220 ready\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/2"}) {
    EXPECT_THAT(wrong([text](const TinyRequest&, int) { return Reaction{text}; }),
                EndsWith(": " + make_error_code(Errc::bad_input).message()))
        << text << ": it does not wait until its timeout";
  }
}

CheckedRequest draw_closing_request(sim::Random&, std::size_t) {
  CheckedRequest request;
  request.text = "GET /n/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  request.check = [](const sim::HttpResponse&) { return std::string(); };
  request.connection = "close";
  return request;
}

TEST(RegularClientsTest, FindAWrongCloseAndAWrongAnnouncement) {
  const auto wrong = [](const React& react, bool closing) {
    RegularClientsOptions options;
    if (closing) options.draw = draw_closing_request;
    return request_regularly(react, options).violation;
  };
  const React right = [](const TinyRequest& request, int) {
    return Reaction{tiny_response(request), request.closes};
  };
  EXPECT_EQ(wrong(right, true), "");
  EXPECT_THAT(
      wrong([](const TinyRequest& request, int) { return Reaction{tiny_response(request)}; }, true),
      EndsWith(": not closed: " + make_error_code(Errc::timed_out).message()));
  EXPECT_THAT(
      wrong([](const TinyRequest&, int) { return Reaction{tiny_response(200, ""), true}; }, true),
      EndsWith(": wrong Connection header: "));
  const React announces = [](TinyRequest request, int) {
    request.closes = true;
    return Reaction{tiny_response(request), true};
  };
  EXPECT_THAT(wrong(announces, false), EndsWith(": wrong Connection header: close"));
}

Requested request_pages(const React& react, bool allowed = false,
                        const ServedPages* served = nullptr) {
  sim::World world({.seed = 1});
  PageTrafficOptions options{
      .may_be_missing = allowed, .may_be_stopped = allowed, .may_fail = allowed, .served = served};
  std::optional<PageTraffic> clients;
  run_clients(clients, options, world, react);
  return {clients->violation(), clients->answered()};
}
Reaction page(const TinyRequest& request, unsigned version) {
  const auto number = static_cast<unsigned>(std::stoul(request.path[1]));
  return {tiny_response(200, page_text(number, version))};
}

TEST(PageTrafficTest, FindsEachWrongAnswer) {
  EXPECT_EQ(page_path(2), "/page/2");
  EXPECT_EQ(page_text(2, 15), "page 2 15\n");
  const Requested right = request_pages([](const TinyRequest& request, int number) {
    return page(request, static_cast<unsigned>(number) / 2);
  });
  EXPECT_EQ(right.violation, "");
  EXPECT_EQ(right.answered, 100U) << "four connections with 25 requests";
  for (const int status : {404, 503}) {
    const React react = [status](const TinyRequest&, int) {
      return Reaction{tiny_response(status, "gone")};
    };
    EXPECT_EQ(request_pages(react, true).violation, "");
    EXPECT_THAT(request_pages(react).violation,
                EndsWith(": answered by " + std::to_string(status) + " gone"));
  }
  const auto wrong = [](const React& react) { return request_pages(react).violation; };
  EXPECT_THAT(
      wrong([](const TinyRequest&, int) { return Reaction{tiny_response(200, page_text(7, 1))}; }),
      EndsWith(": answered by 200 page 7 1\n"));
  EXPECT_THAT(wrong([](const TinyRequest& request, int number) {
                return page(request, number < 12 ? 5U : 4U);
              }),
              EndsWith(": version 4 after 5"));
  EXPECT_EQ(wrong([](const TinyRequest&, int) { return Reaction{""}; }),
            "neither answered nor closed");
  EXPECT_THAT(wrong([](const TinyRequest& request, int) {
                const std::string text = page(request, 1).text;
                return Reaction{text + text};
              }),
              StartsWith("not answered: "))
      << "two responses";
}

TEST(PageTrafficTest, AConnectionFailsOnlyIfItMay) {
  const React closes = [](const TinyRequest&, int) { return Reaction{"", true}; };
  EXPECT_THAT(request_pages(closes).violation, StartsWith("not answered: "));
  EXPECT_EQ(request_pages(closes, true).violation, "");
  EXPECT_EQ(request_pages(nullptr).violation,
            "not connected: " + system_error(ECONNREFUSED).message());
  EXPECT_EQ(request_pages(nullptr, true).violation, "");
}

TEST(PageTrafficTest, ComparesAnswersWithPagesThatDoNotChange) {
  const React right = [](const TinyRequest& request, int) { return page(request, 3); };
  const React missing = [](const TinyRequest&, int) { return Reaction{tiny_response(404, "")}; };
  ServedPages served;
  for (ServedPages::State& each : served.states) each = {true, 3, 2};
  EXPECT_EQ(request_pages(right, true, &served).violation, "");
  EXPECT_THAT(request_pages(missing, true, &served).violation,
              EndsWith(": answered by 404  although it has version 3"));
  for (ServedPages::State& each : served.states) each.version = 4;
  EXPECT_THAT(request_pages(right, true, &served).violation,
              EndsWith(" 3\n although it has version 4"));
  for (ServedPages::State& each : served.states) each.exists = false;
  EXPECT_EQ(request_pages(missing, true, &served).violation, "");
  EXPECT_THAT(request_pages(right, true, &served).violation,
              EndsWith(" 3\n although it was removed"));
  for (ServedPages::State& each : served.states) each.changes = 1;
  EXPECT_EQ(request_pages(right, true, &served).violation, "") << "it changes";
  const React changes = [&served, &right](const TinyRequest& request, int number) {
    for (ServedPages::State& each : served.states) each.changes += 2;
    return right(request, number);
  };
  for (ServedPages::State& each : served.states) each.changes = 2;
  EXPECT_EQ(request_pages(changes, true, &served).violation, "") << "it has changed";
}

struct Attacked {
  std::string violation;
  std::size_t ended = 0;
  std::size_t answers = 0;
};

Task<> answer_and_close(tcp::Stream peer, const std::string& response) {
  std::ignore = co_await peer.write(response);
}
Task<> stay_silent(tcp::Stream peer, const std::string&) {
  std::ignore = co_await sleep(1h);
  static_cast<void>(peer.finish_writing());
}
using Treat = Task<> (*)(tcp::Stream peer, const std::string& response);

Task<Result<>> treat_all(Scope& scope, Treat treat, const std::string& response) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    scope.spawn(treat(std::move(peer), response));
  }
}

/// Attacks a server that treats each client like this, for half a minute.
Attacked attack(Treat treat, const std::string& response, int status) {
  sim::World world({.seed = 1});
  sim::Host& server = world.host("server");
  server.start([&](loop::Platform& host) {
    return Runtime(host, {.announce = false})
        .run_on_each_core(treat_all, treat, std::cref(response));
  });
  Attackers attackers(world, world.host("attackers"), server.address(80), {.count = 20});
  world.schedule(1s, [&] { attackers.begin(); });
  world.schedule(30s, [&] {
    attackers.end();
    EXPECT_EQ(attackers.in_flight_bytes(), 0U) << "no attacker is left";
    server.raise(loop::Signal::terminate);
    server.raise(loop::Signal::terminate);
  });
  static_cast<void>(world.run_until_done(3h));
  return {attackers.violation(), attackers.ended(), attackers.answers(status)};
}

TEST(AttackersTest, CountTheAnswersOfARightServer) {
  const Attacked attacked = attack(answer_and_close, tiny_response(503, ""), 503);
  EXPECT_EQ(attacked.violation, "");
  EXPECT_GT(attacked.ended, 50U);
  EXPECT_GT(attacked.answers, 10U);
}

TEST(AttackersTest, FindAnUnsuitableStatus) {
  const Attacked attacked = attack(answer_and_close, tiny_response(418, ""), 418);
  EXPECT_THAT(attacked.violation, EndsWith(": answered by 418"));
  EXPECT_GT(attacked.answers, 10U);
  EXPECT_THAT(attack(answer_and_close, tiny_response(400, ""), 400).violation,
              EndsWith(": answered by 400"))
      << "400 is not suitable for every attack";
  EXPECT_THAT(attack(answer_and_close, "SMTP ready for you\r\n", -1).violation,
              EndsWith(": answered by -1"));
}

TEST(AttackersTest, FindAServerThatNeitherAnswersNorCloses) {
  const Attacked attacked = attack(stay_silent, "", 200);
  EXPECT_THAT(attacked.violation, StartsWith("neither answered nor closed: "));
  EXPECT_EQ(attacked.answers, 0U);
}

}  // namespace
}  // namespace weir::simulate::clients_test
