// Tests of the client over HTTP/2 against servers that follow scripts, in virtual time: retries,
// flow control, cancellation, silent and hostile servers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::h2_client_server_test {
namespace {

using namespace std::chrono_literals;

class H2ClientServerTest : public H2ServerFixture {
 protected:
  /// Answers requests 1, 3, ... with "ok" until the client leaves.
  static Task<> serve(H2Peer& peer) {
    for (std::uint32_t id = 1;; id += 2) {
      const bool received = co_await peer.receive("head " + std::to_string(id));
      if (!received) co_return;
      co_await peer.send(frames::answer_text(id, "ok"));
    }
  }
  /// Answers the first request after a second, and waits until the client leaves.
  static Task<> serve_slowly(H2Peer& peer) {
    const bool received = co_await peer.receive("head 1");
    if (!received) co_return;
    static_cast<void>(co_await sleep(1s));
    co_await peer.send(frames::answer_text(1, "ok"));
    co_await peer.end();
  }
  /// Waits for the first request, sends bytes, and waits until the client leaves.
  static Script send_after_head(std::string bytes) {
    return [bytes](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("head 1")) co_return;
      co_await peer.send(bytes);
      co_await peer.end();
    };
  }
  /// Returns the outcome of a GET whose server answers with these frames.
  std::string answer(std::string bytes, ClientLimits limits = {}) {
    std::string text;
    with_scripts({send_after_head(std::move(bytes))}, http2(limits),
                 [&](Client& client) -> Task<> { text = co_await ask(client); });
    return text;
  }
};

// Responses.

TEST_F(H2ClientServerTest, InterimResponsesAreDroppedAndTrailersAreKept) {
  const std::string bytes = frames::answer(1, "103", FrameFlag::end_headers) +
                            frames::answer(1, "200", FrameFlag::end_headers) +
                            frames::data(1, "body") +
                            frames::headers(1, frames::block({{"x-sum", "7"}}));
  with_scripts({send_after_head(bytes)}, [](Client& client) -> Task<> {
    auto response = co_await client.send(request(Method::get));
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "body");
    EXPECT_EQ(response->trailers().get("x-sum"), "7");
  });
}

TEST_F(H2ClientServerTest, InterimResponsesAreBounded) {
  std::string bytes;
  for (int count = 0; count < 17; ++count) {
    bytes += frames::answer(1, "103", FrameFlag::end_headers);
  }
  EXPECT_EQ(answer(bytes + frames::answer_text(1, "body")), text_of(ClientError::bad_response));
}

TEST_F(H2ClientServerTest, MalformedResponsesFail) {
  const std::string failed = text_of(ClientError::bad_response);
  const std::string head = frames::answer(1, "200", FrameFlag::end_headers);
  EXPECT_EQ(answer(frames::data(1, "early") + head), failed);
  EXPECT_EQ(answer(frames::answer(1, "100")), failed) << "1xx ends the stream";
  EXPECT_EQ(answer(frames::answer(1, "2x0")), failed);
  EXPECT_EQ(answer(frames::headers(1, frames::block({{"a", "b"}}))), failed) << "no :status";
  EXPECT_EQ(answer(frames::headers(1, "\xFF\xFF")), failed) << "invalid block";
  EXPECT_EQ(answer(frames::headers(1, frames::block({{":status", "200"}, {"connection", "x"}}))),
            failed);
  EXPECT_EQ(
      answer(frames::headers(1, frames::block({{":status", "200"}, {"content-length", "3"}}))),
      failed);
  EXPECT_EQ(answer(head + frames::headers(1, frames::block({{":status", "200"}}))), failed)
      << "a pseudo-field in trailers";
  EXPECT_EQ(answer(frames::frame(FrameType::push_promise, FrameFlag::end_headers, 1,
                                 frames::u32(2) + "\x82")),
            failed);
  EXPECT_EQ(answer(frames::headers(2, "\x88")), failed) << "a stream of the server";
  EXPECT_EQ(answer(frames::answer_text(3, "x")), failed) << "an idle stream";
}

TEST_F(H2ClientServerTest, AMalformedResponseFailsAlsoIfTheServerHasLeft) {
  const auto leave = [this](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "first"));
    if (!co_await peer.receive("head 3")) co_return;
    co_await peer.send(frames::answer(2));
    // The client reads these bytes, and cannot send its GOAWAY.
    for (int each = 0; each < 1000; ++each) platform_.reset_connection(each);
  };
  with_scripts({leave, serve}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "first");
    EXPECT_EQ(co_await ask(client), text_of(ClientError::bad_response));
    EXPECT_EQ(accepted_, 1U);
  });
}

TEST_F(H2ClientServerTest, ALongHeadFails) {
  ClientLimits limits;
  limits.http2.field_list_max = 1'000;
  const std::string block = frames::block({{":status", "200"}, {"a", std::string(1'000, 'x')}});
  EXPECT_EQ(answer(frames::headers(1, block), limits), text_of(ClientError::bad_response));
}

TEST_F(H2ClientServerTest, ABodyThatDiffersFromItsLengthFails) {
  const std::string head = frames::headers(
      1, frames::block({{":status", "200"}, {"content-length", "3"}}), FrameFlag::end_headers);
  EXPECT_EQ(answer(head + frames::data(1, "abc", FrameFlag::end_stream)), "abc");
  EXPECT_EQ(answer(head + frames::data(1, "ab", FrameFlag::end_stream)),
            text_of(ClientError::connection_lost));
  EXPECT_EQ(answer(head + frames::data(1, "abcd", FrameFlag::end_stream)),
            text_of(ClientError::connection_lost));
}

TEST_F(H2ClientServerTest, FloodsEndTheConnection) {
  std::string pings;
  for (int count = 0; count < 5'000; ++count) pings += frames::ping();
  EXPECT_EQ(answer(pings), text_of(ClientError::bad_response)) << "nothing is read";
  std::string block = frames::headers(1, "\x88", 0);
  for (int count = 0; count < 20; ++count) block += frames::continuation(1, "", 0);
  EXPECT_EQ(answer(block), text_of(ClientError::bad_response));
}

// Retries.

TEST_F(H2ClientServerTest, ARequestAboveTheLastStreamOfGoawayIsSentAgain) {
  const auto leave = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 3")) co_return;
    co_await peer.send(frames::goaway(1) + frames::answer_text(1, "first"));
    co_await peer.end();
  };
  with_scripts({leave, serve}, [this](Client& client) -> Task<> {
    auto first = ask(client);
    auto second = outcome(client, request(Method::post, "/post"));
    const auto both = co_await all(std::move(first), std::move(second));
    EXPECT_TRUE(both);
    if (!both) co_return;
    EXPECT_EQ(std::get<0>(*both), "first");
    EXPECT_EQ(std::get<1>(*both), "ok");
    EXPECT_EQ(accepted_, 2U);
    EXPECT_EQ(client.connection_count(), 1U) << "the first one is closed after its last stream";
  });
}

TEST_F(H2ClientServerTest, AConnectionThatGotGoawayIsNotUsedAgain) {
  const auto leave = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "first") + frames::goaway(1));
    co_await peer.end();
  };
  with_scripts({leave, serve}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "first");
    EXPECT_EQ(co_await ask(client), "ok");
    EXPECT_EQ(accepted_, 2U);
  });
}

TEST_F(H2ClientServerTest, ARefusedRequestIsSentAgain) {
  const auto refuse = [](H2Peer& peer) -> Task<> {
    for (std::uint32_t id = 1; id < 7; id += 2) {
      if (!co_await peer.receive("head " + std::to_string(id))) co_return;
      co_await peer.send(frames::rst_stream(id, H2Error::refused_stream));
    }
    if (!co_await peer.receive("head 7")) co_return;
    co_await peer.send(frames::answer_text(7, "fourth"));
    co_await peer.end();
  };
  with_scripts({refuse}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await outcome(client, request(Method::post)), "fourth");
    EXPECT_EQ(accepted_, 1U);
  });
}

TEST_F(H2ClientServerTest, ARequestIsRefusedAtMostFourTimes) {
  std::size_t heads = 0;
  const auto refuse = [&heads](H2Peer& peer) -> Task<> {
    for (std::uint32_t id = 1;; id += 2, ++heads) {
      if (!co_await peer.receive("head " + std::to_string(id))) co_return;
      co_await peer.send(frames::rst_stream(id, H2Error::refused_stream));
    }
  };
  with_scripts({refuse}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), text_of(ClientError::not_processed));
  });
  EXPECT_EQ(heads, 4U);
}

TEST_F(H2ClientServerTest, ARefusedRequestWithAStreamedBodyIsNotProcessed) {
  const auto answer_with = [](std::string bytes) -> Script {
    return [bytes](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("data 1 ")) co_return;
      co_await peer.send(bytes);
      co_await peer.end();
    };
  };
  const std::string refused = frames::rst_stream(1, H2Error::refused_stream);
  const std::string began = frames::answer(1, "103", FrameFlag::end_headers);
  using Case = std::pair<std::string, ClientError>;
  for (const auto& [bytes, error] :
       {Case{refused, ClientError::not_processed},
        Case{frames::goaway(0), ClientError::not_processed},
        Case{began + refused, ClientError::connection_lost},
        Case{frames::rst_stream(1, H2Error::internal_error), ClientError::connection_lost}}) {
    for (const bool waits : {false, true}) {
      std::size_t calls = 0;
      with_scripts({answer_with(bytes)}, [&](Client& client) -> Task<> {
        ClientRequest sent = request(Method::post);
        const auto write = [&calls, waits](BodySink& sink) -> Task<Result<>> {
          ++calls;
          const Result<> written = co_await sink.write("some");
          if (!written || !waits) co_return written;
          co_return co_await sleep(1h);  // the refusal ends it
        };
        sent.set_body("text/plain", Body(StreamFunction(write)));
        EXPECT_EQ(co_await outcome(client, std::move(sent)), text_of(error));
      });
      EXPECT_EQ(calls, 1U);
      EXPECT_EQ(accepted_, 1U);
    }
  }
}

TEST_F(H2ClientServerTest, ALostPostIsNeverSentAgain) {
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "first"));
    static_cast<void>(co_await peer.receive("head 3"));
    peer.close();
  };
  for (const Method method : {Method::post, Method::get}) {
    with_scripts({lose, serve}, [this, method](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client), "first");
      const std::string second = co_await outcome(client, request(method));
      const bool repeats = method == Method::get;
      EXPECT_EQ(second, repeats ? "ok" : text_of(ClientError::connection_lost));
      EXPECT_EQ(accepted_, repeats ? 2U : 1U);
    });
  }
}

TEST_F(H2ClientServerTest, ARequestOnAFreshConnectionIsNotSentAgain) {
  const auto lose = [](H2Peer& peer) -> Task<> {
    static_cast<void>(co_await peer.receive("head 1"));
  };
  with_scripts({lose, serve}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), text_of(ClientError::connection_lost));
    EXPECT_EQ(accepted_, 1U);
  });
}

TEST_F(H2ClientServerTest, RequestsOfALostConnectionShareANewOne) {
  constexpr std::size_t count = 100;
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "first"));
    static_cast<void>(co_await peer.receive("head " + std::to_string(1 + 2 * count)));
  };
  with_scripts({lose, serve, serve, serve}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "first");
    std::vector<Task<std::string>> asking;
    for (std::size_t each = 0; each < count; ++each) asking.push_back(ask(client));
    const auto answers = co_await all(std::move(asking));
    EXPECT_TRUE(answers);
    if (!answers) co_return;
    EXPECT_EQ(std::ranges::count(*answers, "ok"), static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(accepted_, 2U);
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientServerTest, LostRequestsShareAConnectionThatOpensImmediately) {
  OsPlatform platform;  // its connects to a Unix socket do not wait
  const auto loop = Loop::make(platform, {}).value();
  constexpr std::size_t count = 10;
  std::size_t accepted = 0;
  const auto follow = [](AnyStream stream, bool loses) -> Task<> {
    H2Peer peer(std::move(stream));
    co_await peer.send(frames::settings());
    if (!loses) co_return co_await serve(peer);
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "first"));
    static_cast<void>(co_await peer.receive("head " + std::to_string(1 + 2 * count)));
  };
  const auto talk = [&](Scope& scope) -> Task<> {
    ClientOptions options = http2();
    options.unix_socket = "@weir-h2-client-" + std::to_string(::getpid());
    auto listener = co_await unix_socket::listen(options.unix_socket);
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    const auto accept = [&](tcp::Listener on) -> Task<> {
      while (auto stream = co_await on.accept()) {
        const bool loses = accepted++ == 0;
        scope.spawn(follow(AnyStream(std::move(*stream)), loses));
      }
    };
    scope.spawn(accept(std::move(*listener)));
    Client client(std::move(options));
    EXPECT_EQ(co_await ask(client), "first");
    std::vector<Task<std::string>> asking;
    for (std::size_t each = 0; each < count; ++each) asking.push_back(ask(client));
    const auto answers = co_await all(std::move(asking));
    EXPECT_EQ(answers.value_or(std::vector<std::string>()), std::vector<std::string>(count, "ok"));
    EXPECT_EQ(client.connection_count(), 1U);
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop, with_scope(OnFailure::isolate, talk)));
  EXPECT_EQ(accepted, 2U);
}

TEST_F(H2ClientServerTest, ALostRequestUsesAnotherConnectionThatIsAlive) {
  const auto alive = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 3")) co_return;
    co_await peer.send(frames::answer_text(1, "1") + frames::answer_text(3, "3"));
    if (!co_await peer.receive("ping")) co_return;
    co_await peer.send(frames::ping("present?", FrameFlag::ack));
    for (const std::uint32_t id : {5U, 7U}) {
      if (!co_await peer.receive("head " + std::to_string(id))) co_return;
      co_await peer.send(frames::answer_text(id, std::to_string(id)));
    }
    co_await peer.end();
  };
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "1"));
    if (!co_await peer.receive("head 5")) co_return;
    static_cast<void>(co_await sleep(10ms));
  };
  ClientLimits limits;
  limits.http2.streams_max = 2;
  tunnel_times_ = {1ms, 1ms, 3s};
  const auto use = [](Client& client) -> Task<> {
    const auto ask_later = [](Client& each, Duration start) -> Task<std::string> {
      static_cast<void>(co_await sleep(start));
      const Instant begin = (co_await this_context()).loop->now();
      const std::string answer = co_await ask(each);
      const auto took = (co_await this_context()).loop->now() - begin;
      co_return answer + (took < 1s ? "" : " late");
    };
    // Two requests fill the first connection until the third one has opened the second.
    std::vector<Task<std::string>> asking;
    for (const Duration start : {0s, 0s, 0s}) asking.push_back(ask_later(client, start));
    const auto first = co_await all(std::move(asking));
    EXPECT_TRUE(first && client.connection_count() == 2);
    asking.clear();
    for (const Duration start : {0ms, 0ms, 100ms}) asking.push_back(ask_later(client, start));
    const auto second = co_await all(std::move(asking));
    EXPECT_TRUE(second);
    EXPECT_EQ(second.value_or(std::vector<std::string>()),
              (std::vector<std::string>{"ok late", "5", "7"}));
    EXPECT_EQ(client.connection_count(), 2U);
  };
  with_scripts({alive, lose, serve}, through_tunnels(limits), use);
}

TEST_F(H2ClientServerTest, ALostRequestAvoidsAConnectionThatDoesNotAnswer) {
  const auto dead = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 3")) co_return;
    co_await peer.send(frames::answer_text(1, "1") + frames::answer_text(3, "3"));
    co_await peer.end();
  };
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "1"));
    static_cast<void>(co_await peer.receive("head 3"));
  };
  ClientLimits limits;
  limits.http2.streams_max = 2;
  limits.idle_timeout = 60s;
  tunnel_times_ = {1ms, 1ms, 1ms};
  const auto use = [](Client& client) -> Task<> {
    const auto three = co_await all(ask(client), ask(client), ask(client));
    EXPECT_TRUE(three && client.connection_count() == 2);
    const Instant start = (co_await this_context()).loop->now();
    EXPECT_EQ(co_await ask(client), "ok");
    EXPECT_LT((co_await this_context()).loop->now() - start, 1s);
    EXPECT_EQ(client.connection_count(), 2U);
    static_cast<void>(co_await sleep(6s));
    EXPECT_EQ(client.connection_count(), 1U);
  };
  with_scripts({dead, lose, serve}, through_tunnels(limits), use);
}

TEST_F(H2ClientServerTest, AResetResponseIsNotSentAgain) {
  EXPECT_EQ(answer(frames::rst_stream(1, H2Error::internal_error)),
            text_of(ClientError::connection_lost));
  EXPECT_EQ(accepted_, 1U);
  const std::string whole = frames::answer_text(1, "whole");
  EXPECT_EQ(answer(whole + frames::rst_stream(1, H2Error::no_error)), "whole");
}

// Limits and flow control.

TEST_F(H2ClientServerTest, TheServersLimitOfStreamsIsRespected) {
  const auto limited = [](H2Peer& peer) -> Task<> {
    co_await peer.send(frames::settings(frames::setting(SettingId::max_concurrent_streams, 1)));
    for (std::uint32_t id = 1; id < 9; id += 2) {
      if (!co_await peer.receive("head " + std::to_string(id))) co_return;
      static_cast<void>(co_await sleep(10ms));
      const std::string next = "head " + std::to_string(id + 2);
      EXPECT_EQ(peer.lines().find(next), std::string::npos);
      co_await peer.send(frames::answer_text(id, "ok"));
    }
    co_await peer.end();
  };
  ClientOptions options = http2();
  options.limits.connections_per_origin_max = 1;
  with_scripts({limited}, std::move(options), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "ok");  // the settings are known then
    auto both = co_await all(ask(client), ask(client), ask(client));
    EXPECT_TRUE(both);
    if (!both) co_return;
    EXPECT_EQ(std::get<0>(*both), "ok");
    EXPECT_EQ(std::get<1>(*both), "ok");
    EXPECT_EQ(std::get<2>(*both), "ok");
    EXPECT_EQ(accepted_, 1U);
  });
}

TEST_F(H2ClientServerTest, AnOldConnectionIsClosedInTime) {
  ClientLimits limits;
  limits.idle_timeout = 60s;
  limits.age_max = 10s;
  with_scripts({serve, serve}, http2(limits), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "ok");
    static_cast<void>(co_await sleep(9999ms));
    EXPECT_EQ(client.connection_count(), 1U);
    static_cast<void>(co_await sleep(2ms));
    EXPECT_EQ(client.connection_count(), 0U);
    EXPECT_EQ(co_await ask(client), "ok");
    EXPECT_EQ(accepted_, 2U);
  });
}

TEST_F(H2ClientServerTest, ANewRequestOvertakesNoneThatWaits) {
  const auto note = [](H2Peer& peer) -> Task<> {
    for (std::uint32_t id = 1; co_await peer.receive("head " + std::to_string(id)); id += 2) {
      co_await peer.send(frames::answer_text(id, std::to_string(id)));
    }
  };
  ClientLimits limits;
  limits.http2.streams_max = 1;
  limits.connections_per_origin_max = 1;
  with_scripts({note}, http2(limits), [](Client& client) -> Task<> {
    const auto ask_twice = [](Client& each) -> Task<std::string> {
      const std::string first = co_await ask(each);
      co_return first + " " + co_await ask(each);
    };
    const auto answers = co_await all(ask_twice(client), ask(client), ask(client));
    EXPECT_TRUE(answers);
    if (!answers) co_return;
    EXPECT_EQ(std::get<0>(*answers), "1 7");
    EXPECT_EQ(std::get<1>(*answers), "3");
    EXPECT_EQ(std::get<2>(*answers), "5");
  });
}

TEST_F(H2ClientServerTest, ARequestAboveTheServersLimitOfTheHeadIsNotSent) {
  const auto limited = [](H2Peer& peer) -> Task<> {
    co_await peer.send(frames::settings(frames::setting(SettingId::max_header_list_size, 400)));
    co_await serve(peer);
    EXPECT_EQ(peer.lines().find("head 7"), std::string::npos);
  };
  with_scripts({limited}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "ok");  // the settings are known then
    // The list of a request for "/" has 42 + 43 + 38 + 54 = 177 bytes.
    const std::string longest = "/" + std::string(223, 'x');
    EXPECT_EQ(co_await ask(client, longest), "ok");
    EXPECT_EQ(co_await ask(client, longest + "x"), make_error_code(Errc::limit_reached).message());
    EXPECT_EQ(co_await ask(client), "ok");
    EXPECT_EQ(accepted_, 1U);
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientServerTest, ARequestBodyStaysWithinTheWindows) {
  std::size_t received = 0;
  const auto read = [&received](H2Peer& peer) -> Task<> {
    static_cast<void>(co_await timeout(1s, peer.end()));
    for (const char each : peer.lines()) received += each == 'Z' ? 1 : 0;
    co_await peer.send(frames::window_update(0, 34'465) + frames::window_update(1, 34'465));
    static_cast<void>(co_await peer.receive("data 1 y end"));
    co_await peer.send(frames::answer_text(1, "ok"));
    co_await peer.end();
  };
  with_scripts({read}, [](Client& client) -> Task<> {
    ClientRequest sent = request(Method::post);
    sent.set_body("text/plain", Body(std::string(99'999, 'Z') + "y"));
    static_cast<void>(co_await outcome(client, std::move(sent)));
  });
  EXPECT_EQ(received, 65'535U);
}

TEST_F(H2ClientServerTest, AnUnreadResponseHoldsAtMostTheWindowOfItsStream) {
  std::string body;
  for (int count = 0; count < 4; ++count) body += frames::data(1, std::string(16'384, 'x'));
  const std::string head = frames::answer(1, "200", FrameFlag::end_headers);
  const std::string more = frames::data(1, "y", FrameFlag::end_stream);
  const auto answer = [&](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(head + body);
    EXPECT_TRUE(co_await peer.receive("window_update 1 65536"));
    co_await peer.send(more);
    co_await peer.end();
  };
  with_scripts({answer}, [](Client& client) -> Task<> {
    auto response = co_await client.send(request(Method::get));
    EXPECT_TRUE(response);
    if (!response) co_return;
    static_cast<void>(co_await sleep(1s));
    const auto whole = co_await response->body();
    EXPECT_TRUE(whole && whole->size() == 65'537);
  });
  // A server that sends more is wrong.
  with_scripts({send_after_head(head + body + more)}, [](Client& client) -> Task<> {
    auto response = co_await client.send(request(Method::get));
    static_cast<void>(co_await sleep(1s));
    const auto whole = co_await response->body();
    EXPECT_FALSE(whole);
  });
}

TEST_F(H2ClientServerTest, AnErrorEndsTheBodyOfTheRequest) {
  std::size_t written = 0;
  const auto write = [&written](BodySink& sink) -> Task<Result<>> {
    for (;; ++written) {
      const Result<> sent = co_await sink.write(std::string(1'000, 'x'));
      if (!sent) co_return sent;
      static_cast<void>(co_await sleep(1ms));
    }
  };
  const auto reject = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    static_cast<void>(co_await sleep(10ms));
    co_await peer.send(frames::answer(1, "413"));
    EXPECT_TRUE(co_await peer.receive("reset 1 8"));
    co_await peer.end();
  };
  with_scripts({reject}, [&](Client& client) -> Task<> {
    ClientRequest sent = request(Method::post);
    sent.set_body("text/plain", Body(StreamFunction(write)));
    auto response = co_await client.send(std::move(sent));
    EXPECT_TRUE(response && code_of(response->status()) == 413);
    response = fail(Errc::closed);
    static_cast<void>(co_await sleep(1ms));
  });
  EXPECT_LT(written, 20U);
}

TEST_F(H2ClientServerTest, AScopeSendsTheBodyWhileTheResponseIsRead) {
  const auto echo = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer(1, "200", FrameFlag::end_headers));
    for (const char* each : {"a", "b", "c"}) {
      EXPECT_TRUE(co_await peer.receive("data 1 " + std::string(each)));
      co_await peer.send(frames::data(1, each));
    }
    EXPECT_TRUE(co_await peer.receive("data 1  end"));
    co_await peer.send(frames::data(1, "", FrameFlag::end_stream));
    co_await peer.end();
  };
  with_scripts({echo}, [](Client& client) -> Task<> {
    const auto talk = [&](Scope& scope) -> Task<> {
      const auto write = [](BodySink& sink) -> Task<Result<>> {
        for (const std::string_view each : {"a", "b", "c"}) {
          static_cast<void>(co_await sleep(1s));
          const Result<> sent = co_await sink.write(each);
          if (!sent) co_return sent;
        }
        co_return {};
      };
      ClientRequest sent = request(Method::post);
      sent.set_body("text/plain", Body(StreamFunction(write)));
      auto response = co_await client.send(scope, std::move(sent));
      EXPECT_TRUE(response);
      if (!response) co_return;
      const auto first = co_await response->read();
      EXPECT_EQ(first ? to_text(*first) : first.error().message(), "a");
      const auto rest = co_await response->body();
      EXPECT_TRUE(rest && *rest == "bc");
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, talk));
  });
}

TEST_F(H2ClientServerTest, ADroppedResponseReturnsItsWindowBeforeItsBodyEnds) {
  const auto flood = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    std::string bytes = frames::answer(1, "200", FrameFlag::end_headers);
    for (int count = 0; count < 4; ++count) bytes += frames::data(1, std::string(16'384, 'x'));
    co_await peer.send(bytes);
    const Instant start = (co_await this_context()).loop->now();
    EXPECT_TRUE(co_await peer.receive("reset 1 8"));
    EXPECT_LT((co_await this_context()).loop->now() - start, 1s);
    co_await peer.end();
  };
  for (const bool reads : {false, true}) {
    with_scripts({flood}, [reads](Client& client) -> Task<> {
      const auto talk = [&](Scope& scope) -> Task<> {
        const auto write = [](BodySink&) -> Task<Result<>> {
          // The function does not end when it is cancelled.
          const Context shielded{(co_await this_context()).loop, nullptr};
          co_return co_await in_context(shielded, as_task(sleep(10s)));
        };
        ClientRequest sent = request(Method::post);
        sent.set_body("text/plain", Body(StreamFunction(write)));
        auto response = co_await client.send(scope, std::move(sent));
        EXPECT_TRUE(response);
        if (!response) co_return;
        if (reads) {
          EXPECT_TRUE(co_await response->read());
        }
        response = fail(Errc::closed);
      };
      static_cast<void>(co_await with_scope(OnFailure::isolate, talk));
    });
  }
}

TEST_F(H2ClientServerTest, AnIdleConnectionMakesRoomForAnotherOrigin) {
  ClientOptions options = http2();
  options.limits.connections_max = 1;
  with_scripts({serve, serve}, std::move(options), [this](Client& client) -> Task<> {
    const Instant start = (co_await this_context()).loop->now();
    ClientRequest other(Method::get, "http://127.0.0.1:82/");
    const auto both = co_await all(ask(client), outcome(client, std::move(other)));
    EXPECT_TRUE(both);
    if (!both) co_return;
    EXPECT_EQ(std::get<0>(*both), "ok");
    EXPECT_EQ(std::get<1>(*both), "ok");
    EXPECT_LT((co_await this_context()).loop->now() - start, 1s) << "no idle timeout passes";
    EXPECT_EQ(accepted_, 2U);
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientServerTest, OriginsGetConnectionsInTheOrderOfArrival) {
  ClientLimits limits;
  limits.connections_max = 1;
  tunnel_times_ = {1ms, 1ms, 1ms};
  std::string order;
  const auto use = [&order](Client& client) -> Task<> {
    const auto ask_at = [&](Duration start, std::string host) -> Task<> {
      static_cast<void>(co_await sleep(start));
      ClientRequest sent(Method::get, "http://" + host + ".test/");
      EXPECT_EQ(co_await outcome(client, std::move(sent)), "ok");
      order += host;
    };
    // The second request to b changes nothing for the first one, which keeps its place before c.
    const auto done =
        co_await all(ask_at(0ms, "a"), ask_at(10ms, "b"), ask_at(20ms, "c"), ask_at(30ms, "b"));
    EXPECT_TRUE(done);
  };
  with_scripts({serve_slowly, serve, serve}, through_tunnels(limits), use);
  EXPECT_EQ(order, "abbc");
}

TEST_F(H2ClientServerTest, RightsThatAreFreeAtTheSameTimeServeSeveralOrigins) {
  ClientLimits limits;
  limits.connections_max = 2;
  tunnel_times_ = {1ms, 1ms, 1ms, 1ms};
  const auto use = [](Client& client) -> Task<> {
    const Instant start = (co_await this_context()).loop->now();
    std::vector<Task<std::string>> asking;
    for (const std::string_view host : {"a", "b", "c", "d"}) {
      const std::string url = "http://" + std::string(host) + ".test/";
      asking.push_back(outcome(client, ClientRequest(Method::get, url)));
    }
    const auto answers = co_await all(std::move(asking));
    EXPECT_EQ(answers.value_or(std::vector<std::string>()), std::vector<std::string>(4, "ok"));
    EXPECT_LT((co_await this_context()).loop->now() - start, 2500ms);
  };
  with_scripts({serve_slowly, serve_slowly, serve_slowly, serve_slowly}, through_tunnels(limits),
               use);
}

TEST_F(H2ClientServerTest, AWaitEndsAlsoIfConnectionsOpenAndCloseMeanwhile) {
  const auto lose = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    static_cast<void>(co_await sleep(2500ms));
  };
  ClientLimits limits;
  limits.connect_timeout = 5s;
  limits.queue_timeout = 1s;
  limits.connections_per_origin_max = 1;
  limits.http2.streams_max = 1;
  tunnel_times_ = {3s, 3s};  // the first connection is open from 3 s to 5.5 s
  const auto use = [](Client& client) -> Task<> {
    const auto ask_once = [](Client& each) -> Task<std::string> {
      const Instant start = (co_await this_context()).loop->now();
      std::string answer = co_await ask(each);
      const Duration took = (co_await this_context()).loop->now() - start;
      if (took > 6s) answer += " late";
      co_return answer;
    };
    std::vector<Task<std::string>> asking;
    for (int count = 0; count < 4; ++count) asking.push_back(ask_once(client));
    const auto answers = co_await all(std::move(asking));
    const std::string full = text_of(ClientError::queue_timed_out);
    EXPECT_EQ(answers.value_or(std::vector<std::string>()),
              (std::vector<std::string>{text_of(ClientError::connection_lost), full, full, full}));
  };
  with_scripts({lose, serve}, through_tunnels(limits), use);
}

// Cancellation and silence.

TEST_F(H2ClientServerTest, ACancelledRequestResetsItsStreamOnly) {
  const auto answer = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 3")) co_return;
    EXPECT_TRUE(co_await peer.receive("reset 1 8"));
    co_await peer.send(frames::answer_text(1, "late") + frames::answer_text(3, "ok"));
    co_await peer.end();
  };
  with_scripts({answer}, [](Client& client) -> Task<> {
    auto both = co_await all(timeout(1s, ask(client, "/cancelled")), ask(client));
    EXPECT_TRUE(both && std::get<1>(*both) == "ok");
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientServerTest, ASilentConnectionIsAskedAndClosed) {
  const auto silent = [](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("head 1"));
    EXPECT_TRUE(co_await peer.receive("ping"));
    co_await peer.send(frames::ping("present?", FrameFlag::ack));
    co_await peer.end();
  };
  with_scripts({silent}, [](Client& client) -> Task<> {
    const Instant start = (co_await this_context()).loop->now();
    EXPECT_EQ(co_await ask(client), text_of(ClientError::head_timed_out)) << "it is alive";
    EXPECT_EQ((co_await this_context()).loop->now() - start, 30s);
    EXPECT_EQ(client.connection_count(), 1U);
  });
  const auto dead = [](H2Peer& peer) -> Task<> { co_await peer.end(); };
  with_scripts({dead}, [](Client& client) -> Task<> {
    const Instant start = (co_await this_context()).loop->now();
    EXPECT_EQ(co_await ask(client), text_of(ClientError::connection_lost));
    EXPECT_EQ((co_await this_context()).loop->now() - start, 20s);
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(H2ClientServerTest, ASilentConnectionWithoutAPingTimeoutIsAskedOnce) {
  std::string frames;
  const auto dead = [&frames](H2Peer& peer) -> Task<> {
    co_await peer.end();
    frames = peer.lines();
  };
  ClientLimits limits;
  limits.ping_timeout = Duration::max();
  with_scripts({dead}, http2(limits), [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), text_of(ClientError::head_timed_out));
    EXPECT_EQ(client.connection_count(), 1U);
  });
  const std::size_t first = frames.find("\nping");
  EXPECT_NE(first, std::string::npos) << frames;
  EXPECT_EQ(frames.rfind("\nping"), first) << frames;
}

TEST_F(H2ClientServerTest, ATimedOutRequestLeavesNoDeadConnection) {
  const auto dead = [](H2Peer& peer) -> Task<> { co_await peer.end(); };
  with_scripts({dead, serve}, [this](Client& client) -> Task<> {
    ClientRequest first = request(Method::get);
    first.set_timeout(1s);
    EXPECT_EQ(co_await outcome(client, std::move(first)), text_of(ClientError::timed_out));
    EXPECT_EQ(co_await ask(client), "ok") << "on another connection";
    EXPECT_EQ(accepted_, 2U);
    static_cast<void>(co_await sleep(6s));
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(H2ClientServerTest, AnIdleConnectionAnswersPing) {
  const auto idle = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1")) co_return;
    co_await peer.send(frames::answer_text(1, "ok"));
    static_cast<void>(co_await sleep(1s));
    co_await peer.send(frames::ping());
    EXPECT_TRUE(co_await peer.receive("ping f1 8 bytes."));
    co_await peer.end();
  };
  with_scripts({idle}, [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "ok");
    static_cast<void>(co_await sleep(2s));
    EXPECT_EQ(client.idle_count(), 1U);
  });
}

}  // namespace
}  // namespace weir::http::h2_client_server_test
