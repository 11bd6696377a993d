// Tests of the pool of a client: which connections requests use, and which limits they meet.
#include "weir/http/client/detail/client_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/client_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::client_pool_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view address = "http://127.0.0.1:81/";

class ClientPoolTest : public ClientFixture {
 protected:
  using ClientFixture::with_server;

  void with_server(std::vector<std::vector<Step>> scripts, const ClientLimits& limits, Body body) {
    ClientOptions options;
    options.limits = limits;
    with_server(std::move(scripts), std::move(options), std::move(body));
  }
  /// Lets the failure of BlockPool::fail_after() happen, if it has not.
  void use_up_failure() {
    while (loop_->blocks().will_fail()) {
      try {
        BlockPool::release(BlockPool::allocate(16));
      } catch (const std::bad_alloc&) {
      }
    }
  }
};

TEST_F(ClientPoolTest, RequestsUseAnIdleConnectionAgain) {
  with_server({}, [this](Client& client) -> Task<> {
    for (int request = 0; request < 3; ++request) {
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(client.connection_count(), 1U);
      EXPECT_EQ(client.idle_count(), 1U);
    }
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:82/"), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 2U) << "another port is another origin";
  });
}

TEST_F(ClientPoolTest, ReportsItsConnectionsAsMetrics) {
  const auto numbers = [this] {
    std::string text;
    const MetricSnapshot sum = loop_->metrics().read();
    for (const Metric& each : sum.metrics()) {
      if (each.name.starts_with("http client ")) text += std::to_string(each.value) + " ";
    }
    return text;
  };
  ClientLimits limits;
  limits.connections_per_origin_max = 1;
  with_server({}, limits, [&](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(numbers(), "0 1 0 ") << "active, idle, waiting";
    const auto look = [&]() -> Task<> {
      EXPECT_EQ(numbers(), "1 0 1 ");
      co_return;
    };
    const auto both = co_await all(ask(client), ask(client), look());
    EXPECT_TRUE(both);
    EXPECT_EQ(numbers(), "0 1 0 ");
  });
  EXPECT_EQ(numbers(), "") << "the gauges leave with the client";
}

TEST_F(ClientPoolTest, TheConnectionThatWasUsedLastComesFirst) {
  with_server({}, [this](Client& client) -> Task<> {
    auto both = co_await all(ask(client), ask(client));
    EXPECT_TRUE(both);
    EXPECT_EQ(client.idle_count(), 2U);
    for (int second = 0; second < 5; ++second) {
      co_await wait(1s);
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(server_of_scripts_.connections.back(), server_of_scripts_.connections[2]);
    }
    EXPECT_EQ(client.idle_count(), 1U) << "the other one was idle for 4 s";
    EXPECT_EQ(server_of_scripts_.accepted, 2U);
  });
}

TEST_F(ClientPoolTest, AnyInputRemovesAnIdleConnection) {
  const std::vector<Step> byte{{.late = "x", .pause = 1s}};
  const std::vector<Step> answer{{.late = std::string(hello), .pause = 1s}};
  const std::vector<Step> end{{.pause = 1s, .close = true}};
  for (const std::vector<Step>& script : {byte, answer, end}) {
    with_server({script}, [this](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(client.idle_count(), 1U);
      co_await wait(999ms);
      EXPECT_EQ(client.idle_count(), 1U);
      co_await wait(2ms);
      EXPECT_EQ(client.idle_count(), 0U);
      EXPECT_EQ(client.connection_count(), 0U);
      EXPECT_EQ(co_await outcome_of(client, ClientRequest(Method::post, address)), "hello");
      EXPECT_EQ(server_of_scripts_.accepted, 2U);
    });
  }
}

TEST_F(ClientPoolTest, BytesAfterABodyCloseTheConnection) {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (const std::string& answer : {std::string(hello) + "x", chunked + std::string(hello)}) {
    with_server({{{.answer = answer}}}, [this](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(client.connection_count(), 0U);
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(server_of_scripts_.accepted, 2U);
    });
  }
}

TEST_F(ClientPoolTest, AConnectionThatTheServerWillCloseIsNotUsedAgain) {
  const std::string closing =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
  with_server({{{.answer = closing}}}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(ClientPoolTest, IdleConnectionsCloseAfterTheShorterTimeout) {
  struct Row {
    std::string header;
    Duration kept;
  };
  const std::vector<Row> rows{
      {"", 4s},
      {"Keep-Alive: timeout=5\r\n", 4s},
      {"Keep-Alive: timeout=3, max=100\r\n", 2s},
      {"Keep-Alive: max=9, Timeout=2\r\n", 1s},
      {"Keep-Alive: timeout=60\r\n", 4s},
      {"Keep-Alive: timeout=x\r\n", 4s},
  };
  for (const Row& row : rows) {
    const std::string answer =
        "HTTP/1.1 200 OK\r\n" + row.header + "Content-Length: 5\r\n\r\nhello";
    with_server({{{.answer = answer}}}, [&row](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      co_await wait(row.kept - 1ms);
      EXPECT_EQ(client.idle_count(), 1U) << row.header;
      co_await wait(2ms);
      EXPECT_EQ(client.connection_count(), 0U) << row.header;
    });
  }
  const std::string short_time =
      "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 5\r\n\r\nhello";
  with_server({{{.answer = short_time}}}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(client.connection_count(), 0U) << "the margin takes the whole time";
  });
}

TEST_F(ClientPoolTest, AnIdleTimeoutCountsFromTheEndOfTheLastRequest) {
  const Step slow{.answer = "", .late = std::string(hello), .pause = 5s};
  with_server({{Step{}, slow}}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(co_await ask(client), "hello") << "the timeout ends no request";
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    co_await wait(3999ms);
    EXPECT_EQ(client.idle_count(), 1U);
    co_await wait(2ms);
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(ClientPoolTest, ALaterResponseCanShortenTheIdleTimeout) {
  const Step brief{
      .answer = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 5\r\n\r\nhello"};
  with_server({{Step{}, brief}}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(co_await ask(client), "hello");
    co_await wait(999ms);
    EXPECT_EQ(client.idle_count(), 1U);
    co_await wait(2ms);
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(ClientPoolTest, OldConnectionsAreReplaced) {
  ClientLimits limits;
  limits.age_max = 10s;
  with_server({}, limits, [this](Client& client) -> Task<> {
    for (int second = 0; second < 10; ++second) {
      EXPECT_EQ(co_await ask(client), "hello");
      co_await wait(1s);
    }
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    EXPECT_EQ(client.connection_count(), 0U);
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 2U);
  });
}

TEST_F(ClientPoolTest, AnUnreadBodyThatHasArrivedKeepsTheConnection) {
  with_server({}, [](Client& client) -> Task<> {
    {
      const auto response = co_await client.get(address);
      EXPECT_TRUE(response && response->status() == Status::ok);
    }
    EXPECT_EQ(client.idle_count(), 1U);
  });
  const std::string cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
  with_server({{{.answer = cut, .late = "lo", .pause = 1s}}}, [](Client& client) -> Task<> {
    {
      const auto response = co_await client.get(address);
      EXPECT_TRUE(response && response->status() == Status::ok);
    }
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(ClientPoolTest, ACancelledResponseDoesNotComeBack) {
  const std::string cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
  with_server({{{.answer = cut, .late = "lo", .pause = 1s}}}, [this](Client& client) -> Task<> {
    auto asking = ask(client);
    const auto cancelled = co_await timeout(500ms, std::move(asking));
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(client.connection_count(), 0U);
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 2U);
  });
}

TEST_F(ClientPoolTest, RequestsWaitForAConnectionOfTheirOriginInOrder) {
  ClientLimits limits;
  limits.connections_per_origin_max = 1;
  const std::vector<Step> slow(4, Step{.answer = "", .late = std::string(hello), .pause = 1s});
  with_server({slow}, limits, [this](Client& client) -> Task<> {
    std::vector<Task<std::string>> asking;
    for (const std::string_view path : {"1", "2", "3", "4"}) {
      asking.push_back(ask(client, std::string(address) + std::string(path)));
    }
    const auto all_answers = co_await all(std::move(asking));
    EXPECT_TRUE(all_answers);
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    EXPECT_EQ(server_of_scripts_.requests.size(), 4U);
    for (std::size_t index = 0; index < server_of_scripts_.requests.size(); ++index) {
      EXPECT_EQ(server_of_scripts_.requests[index].substr(0, 6),
                "GET /" + std::to_string(index + 1));
    }
  });
}

TEST_F(ClientPoolTest, AQueueEndsByItsTimeoutAndItsLength) {
  ClientLimits limits;
  limits.connections_per_origin_max = 1;
  limits.waiting_max = 1;
  limits.queue_timeout = 2s;
  const std::vector<Step> slow{{.answer = "", .late = std::string(hello), .pause = 3s}};
  with_server({slow}, limits, [](Client& client) -> Task<> {
    auto first = ask(client);
    auto second = ask(client);
    auto third = ask(client);
    auto other = ask(client, "http://127.0.0.1:82/");
    const auto outcomes =
        co_await all(std::move(first), std::move(second), std::move(third), std::move(other));
    EXPECT_TRUE(outcomes);
    if (!outcomes) co_return;
    EXPECT_EQ(std::get<0>(*outcomes), "hello");
    EXPECT_EQ(std::get<1>(*outcomes), "queue_timed_out");
    EXPECT_EQ(std::get<2>(*outcomes), "queue_full");
    EXPECT_EQ(std::get<3>(*outcomes), "hello") << "another origin does not wait";
  });
}

TEST_F(ClientPoolTest, ANewConnectionReplacesTheOneThatWasIdleForTheLongestTime) {
  ClientLimits limits;
  limits.connections_max = 2;
  with_server({}, limits, [this](Client& client) -> Task<> {
    auto both = co_await all(ask(client), ask(client));
    EXPECT_TRUE(both);
    EXPECT_EQ(client.idle_count(), 2U);
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:82/"), "hello");
    EXPECT_EQ(client.idle_count(), 2U);
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 3U);
  });
}

TEST_F(ClientPoolTest, AllOriginsTogetherHaveALimit) {
  ClientLimits limits;
  limits.connections_max = 1;
  limits.queue_timeout = 1s;
  const std::vector<Step> slow{{.answer = "", .late = std::string(hello), .pause = 2s}};
  with_server({slow}, limits, [this](Client& client) -> Task<> {
    auto first = ask(client);
    auto second = ask(client, "http://127.0.0.1:82/");
    const auto outcomes = co_await all(std::move(first), std::move(second));
    EXPECT_TRUE(outcomes && std::get<0>(*outcomes) == "hello");
    EXPECT_TRUE(outcomes && std::get<1>(*outcomes) == "queue_timed_out");
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:82/"), "hello");
  });
}

TEST_F(ClientPoolTest, EachRequestToADeadHostHasItsOwnTimeToConnect) {
  ClientOptions options;  // the connections may speak HTTP/2, and their tunnel never opens
  options.plain_http2 = true;
  options.proxy.url = *Url::parse(address);
  options.proxy.tunnel = true;
  options.limits.queue_timeout = 60s;
  const std::vector<Step> silent{{.answer = "", .pause = 1h}};
  with_server({silent, silent, silent, silent}, std::move(options), [](Client& client) -> Task<> {
    const auto ask_at = [](Client& each, Duration start) -> Task<Duration> {
      co_await wait(start);
      const Instant begin = (co_await this_context()).loop->now();
      EXPECT_EQ(co_await ask(each, "http://a.test/"), "connect_timed_out");
      co_return (co_await this_context()).loop->now() - begin;
    };
    std::vector<Task<Duration>> asking;
    for (const Duration start : {0s, 1s, 2s, 2s}) asking.push_back(ask_at(client, start));
    const auto times = co_await all(std::move(asking));
    EXPECT_TRUE(times);
    EXPECT_EQ(times.value_or(std::vector<Duration>()), std::vector<Duration>(4, 5s));
  });
}

TEST_F(ClientPoolTest, AnHttp2ConnectionThatFindsNoMemoryCountsNoMore) {
  ClientOptions options;
  options.plain_http2 = true;
  bool failed = true;
  std::size_t count = 0;
  for (; failed; ++count) {
    with_server({}, [&](Client&) -> Task<> {
      ClientPool pool(options);
      const auto url = Url::parse(address);
      EXPECT_TRUE(url);
      if (!url) co_return;
      auto lease = pool.try_acquire(*url);
      EXPECT_TRUE(lease);
      if (!lease) co_return;
      EXPECT_TRUE(co_await lease->connect(*url, never));
      EXPECT_EQ(pool.open_count(), 1U);
      loop_->blocks().fail_after(count);
      failed = false;
      try {
        pool.add_http2(std::move(*lease));
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      lease.reset();
      EXPECT_EQ(pool.open_count(), failed ? 0U : 1U) << count;
      use_up_failure();
    });
  }
  EXPECT_GT(count, 2U);
}

TEST_F(ClientPoolTest, AConnectionAfterAnIdleOneHasTheWholeTimeToConnect) {
  ClientOptions options;
  options.plain_http2 = true;
  options.proxy.url = *Url::parse(address);
  options.proxy.tunnel = true;
  options.limits.idle_timeout = 1h;
  const std::vector<Step> tunnel{{.answer = "HTTP/1.1 200 OK\r\n\r\n"}};
  const std::vector<Step> silent{{.answer = "", .pause = 1h}};
  with_server({tunnel, silent, tunnel}, [&](Client&) -> Task<> {
    ClientPool pool(options);
    const Url url = *Url::parse("http://a.test/");
    auto first = pool.try_acquire(url);
    auto second = pool.try_acquire(url);
    EXPECT_TRUE(first && second);
    if (!first || !second) co_return;
    EXPECT_TRUE(co_await first->connect(url, never));
    first->release_for_reuse(1h);
    const auto fail_to_open = [&]() -> Task<> {
      EXPECT_FALSE(co_await second->connect(url, never));
      second.reset();
    };
    const auto use_idle = [&]() -> Task<> {
      co_await wait(1s);
      auto place = co_await pool.acquire(url, never);
      EXPECT_TRUE(place && place->lease && place->lease->take_idle());
      if (!place || !place->lease) co_return;
      co_await wait(10s);
      EXPECT_TRUE(co_await place->lease->connect(url, never));
    };
    const auto both = co_await all(fail_to_open(), use_idle());
    EXPECT_TRUE(both);
  });
}

// The retry.

constexpr std::string_view lost = "connection_lost";

TEST_F(ClientPoolTest, AnIdempotentRequestIsSentAgainOnce) {
  const std::vector<Step> closing{{}, {.answer = "", .close = true}};
  for (const Method method : {Method::get, Method::head, Method::put, Method::delete_}) {
    with_server({closing}, [this, method](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      const std::string outcome = co_await outcome_of(client, ClientRequest(method, address));
      EXPECT_EQ(outcome, method == Method::head ? "" : "hello");
      EXPECT_EQ(server_of_scripts_.requests.size(), 3U);
      EXPECT_EQ(server_of_scripts_.accepted, 2U);
    });
  }
  const std::vector<Step> at_once{{.answer = "", .close = true}};
  with_server({closing, at_once}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(co_await ask(client), lost) << "a new connection is no reason for a retry";
    EXPECT_EQ(server_of_scripts_.requests.size(), 3U);
  });
}

TEST_F(ClientPoolTest, APostIsSentAgainOnlyWithAKey) {
  const std::vector<Step> closing{{}, {.answer = "", .close = true}};
  with_server({closing}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(co_await outcome_of(client, ClientRequest(Method::post, address)), lost);
    EXPECT_EQ(server_of_scripts_.requests.size(), 2U);
  });
  with_server({closing}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    ClientRequest post(Method::post, address);
    post.add_header("Idempotency-Key", "7");
    EXPECT_EQ(co_await outcome_of(client, std::move(post)), "hello");
    EXPECT_EQ(server_of_scripts_.requests.size(), 3U);
  });
}

TEST_F(ClientPoolTest, AByteOfAResponseForbidsARetry) {
  const std::vector<Step> closing{{}, {.answer = "H", .close = true}};
  with_server({closing}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(co_await ask(client), lost);
    EXPECT_EQ(server_of_scripts_.requests.size(), 2U);
  });
}

TEST_F(ClientPoolTest, ACalledStreamForbidsARetry) {
  const std::vector<Step> closing{{}, {.answer = "", .close = true}};
  with_server({closing}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    const auto write = [](BodySink& sink) { return sink.write("text"); };
    ClientRequest put(Method::put, address);
    put.set_body("text/plain", http::Body(StreamFunction(write)));
    EXPECT_EQ(co_await outcome_of(client, std::move(put)), lost);
    EXPECT_EQ(server_of_scripts_.requests.size(), 2U);
  });
}

TEST_F(ClientPoolTest, AConnectionThatTakesNoByteIsReplacedForAnyMethod) {
  with_server({}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    for (int each = 0; each < 1000; ++each) platform_.reset_connection(each);
    EXPECT_EQ(client.idle_count(), 1U) << "the loop has not seen the reset yet";
    EXPECT_EQ(co_await outcome_of(client, ClientRequest(Method::post, address)), "hello");
    EXPECT_EQ(server_of_scripts_.requests.size(), 2U);
    EXPECT_EQ(server_of_scripts_.accepted, 2U);
  });
}

/// Returns the steps that end at each byte of a request with this head, and of its response.
std::vector<Step> cuts_of(std::string_view head) {
  std::vector<Step> cuts;
  for (std::size_t read = 0; read <= head.size(); ++read) {
    cuts.push_back({.answer = "", .close = true, .reads = read});
  }
  for (std::size_t sent = 0; sent <= hello.size(); ++sent) {
    cuts.push_back({.answer = std::string(hello.substr(0, sent)), .close = true});
  }
  return cuts;
}

TEST_F(ClientPoolTest, APostIsSentAtMostOnceAtEveryCutPoint) {
  const std::string_view head =
      "POST / HTTP/1.1\r\nHost: 127.0.0.1:81\r\nContent-Length: 0\r\n\r\n";
  for (const Step& cut : cuts_of(head)) {
    with_server({{Step(), cut}}, [&](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      const std::string outcome = co_await outcome_of(client, ClientRequest(Method::post, address));
      const std::size_t arrivals = server_of_scripts_.requests.size() - 1;
      EXPECT_LE(arrivals, 1U) << cut.reads << cut.answer;
      if (outcome == "hello") {
        EXPECT_EQ(arrivals, 1U) << cut.reads << cut.answer;
      }
    });
  }
}

TEST_F(ClientPoolTest, AGetFailsOnlyAtTheCutPointsOfItsResponse) {
  for (const Step& cut : cuts_of("GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n")) {
    with_server({{Step(), cut}}, [&](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "hello");
      const bool is_cut = !cut.answer.empty() && cut.answer != hello;
      const std::string_view expected = is_cut ? lost : "hello";
      EXPECT_EQ(co_await ask(client), expected) << cut.reads << cut.answer;
    });
  }
}

}  // namespace
}  // namespace weir::http::client_pool_test
