// Tests of requests that are sent while their responses are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/client_fixture.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::client_duplex_test {
namespace {

constexpr std::string_view url = "http://127.0.0.1:81/";
constexpr std::size_t piece_size = 64 * 1024;

/// Serves a connection after the head of a request was read. `rest` is what came with the head.
using Answer = std::function<Task<Result<>>(tcp::Stream&, std::string rest)>;

/// Writes `count` pieces, or until an error, which it keeps.
struct Pieces {
  std::size_t count = 0;
  std::size_t written = 0;
  std::error_code error = {};
  bool ended = false;
};
Task<Result<>> write_pieces(BodySink& sink, Pieces* pieces) {
  const std::string piece(piece_size, 'p');
  while (pieces->written < pieces->count) {
    const Result<> written = co_await sink.write(piece);
    if (!written) {
      pieces->error = written.error();
      pieces->ended = true;
      co_return written;
    }
    ++pieces->written;
  }
  pieces->ended = true;
  co_return {};
}

ClientRequest post_of(StreamFunction write, std::optional<std::uint64_t> length = std::nullopt) {
  ClientRequest post(Method::post, url);
  post.set_body("application/octet-stream", http::Body(std::move(write), length));
  return post;
}
ClientRequest post_of(Pieces& pieces) {
  return post_of([&pieces](BodySink& sink) { return write_pieces(sink, &pieces); },
                 pieces.count * piece_size);
}

class ClientDuplexTest : public ClientFixture {
 protected:
  /// Runs `talk` in a scope with a client, beside a server that answers each request by `answer`.
  void run_with(Answer answer, std::function<Task<Result<>>(Scope&, Client&)> talk,
                ClientOptions options = {}) {
    Client client(std::move(options));
    const auto serve = [&](Scope& scope) -> Task<Result<>> {
      auto listener = co_await tcp::listen(Endpoint::loopback(81));
      if (!listener) co_return fail(listener.error());
      scope.spawn(accept(scope, std::move(*listener), &answer));
      const auto body = [&](Scope& own) { return talk(own, client); };
      result_ = co_await with_scope(body);
      EXPECT_EQ(client.connection_count(), client.idle_count()) << "the scope has ended";
      connections_ = client.connection_count();
      scope.cancel();
      co_return {};
    };
    static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, serve)));
  }
  static Task<> accept(Scope& scope, tcp::Listener listener, const Answer* answer) {
    while (true) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      scope.spawn(serve_stream(std::move(*stream), answer));
    }
  }
  static Task<> serve_stream(tcp::Stream stream, const Answer* answer) {
    std::string input;
    while (true) {
      auto piece = co_await stream.read();
      if (!piece) co_return;
      input += piece->text();
      const std::size_t end = input.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      auto answering = (*answer)(stream, input.substr(end + 4));
      const Result<> answered = co_await std::move(answering);
      if (!answered) co_return;
      input.clear();
    }
  }
  /// Reads all of a body; returns its size.
  static Task<Result<std::size_t>> size_of(ClientResponse& response) {
    std::size_t size = 0;
    while (true) {
      WEIR_CO_TRY(const Bytes piece, co_await response.read());
      if (piece.empty()) co_return size;
      size += piece.size();
    }
  }

  Result<> result_;
  std::size_t connections_ = 0;  ///< those of the client at its end
};

/// Sends `size` bytes of the request back while they arrive.
Answer echo(std::size_t size) {
  return [size](tcp::Stream& stream, std::string rest) -> Task<Result<>> {
    const std::string head =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
    WEIR_CO_TRY(co_await stream.write(head));
    WEIR_CO_TRY(co_await stream.write(rest));
    for (std::size_t sent = rest.size(); sent < size;) {
      WEIR_CO_TRY(const auto piece, co_await stream.read());
      sent += piece.size();
      WEIR_CO_TRY(co_await stream.write(piece.bytes()));
    }
    co_return {};
  };
}

TEST_F(ClientDuplexTest, AnEchoOfAnySizeIsReadWhileItIsSent) {
  for (const std::size_t count : {1U, 128U}) {
    const std::size_t size = count * piece_size;
    Pieces pieces{count};
    run_with(echo(size), [&](Scope& scope, Client& client) -> Task<Result<>> {
      WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(pieces)));
      EXPECT_EQ(response.status(), Status::ok);
      WEIR_CO_TRY(const std::size_t received, co_await size_of(response));
      EXPECT_EQ(received, size);
      co_return {};
    });
    EXPECT_TRUE(result_);
    EXPECT_TRUE(pieces.ended && !pieces.error);
    EXPECT_EQ(connections_, 1U) << "the connection is idle";
  }
}

TEST_F(ClientDuplexTest, ALongTextIsSentToo) {
  constexpr std::size_t size = 4 * 1024 * 1024;
  run_with(echo(size), [&](Scope& scope, Client& client) -> Task<Result<>> {
    ClientRequest post(Method::post, url);
    post.set_body("text/plain", http::Body(std::string(size, 't')));
    WEIR_CO_TRY(auto response, co_await client.send(scope, std::move(post)));
    WEIR_CO_TRY(const std::size_t received, co_await size_of(response));
    EXPECT_EQ(received, size);
    WEIR_CO_TRY(auto again, co_await client.send(scope, ClientRequest(Method::post, url)));
    again = std::move(response);
    co_return {};
  });
  EXPECT_TRUE(result_);
}

TEST_F(ClientDuplexTest, AnEarlyErrorStopsTheSending) {
  for (const bool in_scope : {true, false}) {
    Pieces pieces{1000};
    const auto refuse = [](tcp::Stream& stream, std::string) -> Task<Result<>> {
      WEIR_CO_TRY(co_await stream.write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"));
      co_return co_await sleep(1h);
    };
    const Instant start = loop_->now();
    run_with(refuse, [&](Scope& scope, Client& client) -> Task<Result<>> {
      std::optional<ClientResponse> response;
      if (in_scope) {
        WEIR_CO_TRY(response, co_await client.send(scope, post_of(pieces)));
      } else {
        WEIR_CO_TRY(response, co_await client.send(post_of(pieces)));
      }
      EXPECT_EQ(response->status(), Status::content_too_large);
      EXPECT_TRUE(pieces.ended);
      EXPECT_EQ(pieces.error, Errc::cancelled);
      WEIR_CO_TRY(const std::string body, co_await response->body());
      EXPECT_EQ(body, "no");
      EXPECT_EQ(client.connection_count(), 0U) << "the request was cut off";
      co_return {};
    });
    EXPECT_TRUE(result_);
    EXPECT_LT(pieces.written, 10U);
    EXPECT_EQ(loop_->now() - start, 0s) << "the response is returned at once";
  }
}

TEST_F(ClientDuplexTest, ADroppedResponseEndsTheSending) {
  Pieces pieces{1000};
  run_with(echo(1000 * piece_size), [&](Scope& scope, Client& client) -> Task<Result<>> {
    {
      WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(pieces)));
      WEIR_CO_TRY(const Bytes piece, co_await response.read());
      EXPECT_FALSE(piece.empty());
      EXPECT_FALSE(pieces.ended);
    }
    co_await scope.children_finished();
    EXPECT_EQ(pieces.error, Errc::cancelled);
    EXPECT_EQ(client.connection_count(), 0U);
    co_return {};
  });
  EXPECT_TRUE(result_);
}

TEST_F(ClientDuplexTest, TheSendingMayEndAfterTheResponse) {
  std::string received;
  const auto answer_first = [&](tcp::Stream& stream, std::string rest) -> Task<Result<>> {
    WEIR_CO_TRY(co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    received = std::move(rest);
    while (received.size() < 10) {
      WEIR_CO_TRY(const auto piece, co_await stream.read());
      received += piece.text();
    }
    co_return {};
  };
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("01234"));
    WEIR_CO_TRY(co_await sleep(1s));
    co_return co_await sink.write("56789");
  };
  run_with(answer_first, [&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(write, 10)));
    WEIR_CO_TRY(const std::string body, co_await response.body());
    EXPECT_EQ(body, "ok");
    EXPECT_EQ(client.idle_count(), 0U) << "the request is not complete";
    co_await scope.children_finished();
    EXPECT_EQ(client.idle_count(), 1U);
    co_return {};
  });
  EXPECT_TRUE(result_);
  EXPECT_EQ(received, "0123456789");
}

TEST_F(ClientDuplexTest, AResponseMayComeBeforeTheFunctionReturns) {
  const auto answer = [](tcp::Stream& stream, std::string rest) -> Task<Result<>> {
    while (rest.size() < 10) {
      WEIR_CO_TRY(const auto piece, co_await stream.read());
      rest += piece.text();
    }
    co_return co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("0123456789"));
    co_return co_await sleep(1h);
  };
  const Instant start = loop_->now();
  run_with(answer, [&](Scope&, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(auto response, co_await client.send(post_of(write, 10)));
    WEIR_CO_TRY(const std::string body, co_await response.body());
    EXPECT_EQ(body, "ok");
    EXPECT_EQ(client.idle_count(), 1U) << "all bytes were sent";
    co_return {};
  });
  EXPECT_TRUE(result_);
  EXPECT_EQ(loop_->now() - start, 0s);
}

TEST_F(ClientDuplexTest, AServerThatHasAnsweredMayLeaveTheRestUnread) {
  const auto answer = [](tcp::Stream& stream, std::string) -> Task<Result<>> {
    WEIR_CO_TRY(co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok"));
    WEIR_CO_TRY(co_await sleep(5s));
    WEIR_CO_TRY(co_await stream.write("ay"));
    co_return co_await sleep(1h);
  };
  ClientOptions options;
  options.limits.body_timeout = 3s;
  options.limits.head_timeout = 3s;
  Pieces pieces{1000};
  run_with(
      answer,
      [&](Scope& scope, Client& client) -> Task<Result<>> {
        WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(pieces)));
        WEIR_CO_TRY(const Bytes first, co_await response.read());
        EXPECT_EQ(to_text(first), "ok");
        WEIR_CO_TRY(co_await sleep(4s));  // the body of the request has timed out meanwhile
        EXPECT_EQ(pieces.error, ClientError::body_timed_out);
        WEIR_CO_TRY(const Bytes second, co_await response.read());
        EXPECT_EQ(to_text(second), "ay");
        co_return {};
      },
      std::move(options));
  EXPECT_TRUE(result_);
}

TEST_F(ClientDuplexTest, AnErrorOfTheFunctionFailsTheRequestOrItsReads) {
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("piece"));
    WEIR_CO_TRY(co_await sleep(1s));
    co_return fail(Errc::conflict);
  };
  for (const bool early : {true, false}) {
    const auto answer = [early](tcp::Stream& stream, std::string) -> Task<Result<>> {
      if (early) WEIR_CO_TRY(co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
      co_return co_await sleep(1h);
    };
    const Instant start = loop_->now();
    run_with(answer, [&](Scope& scope, Client& client) -> Task<Result<>> {
      auto response = co_await client.send(scope, post_of(write));
      EXPECT_EQ(response.has_value(), early);
      if (!response) co_return fail(response.error());
      for (int count = 0; count < 2; ++count) {
        const auto piece = co_await response->read();
        EXPECT_TRUE(!piece && piece.error() == Errc::conflict);
      }
      co_return fail(Errc::conflict);
    });
    EXPECT_TRUE(!result_ && result_.error() == Errc::conflict) << "the scope itself has not failed";
    EXPECT_EQ(loop_->now() - start, 1s);
    EXPECT_EQ(connections_, 0U);
  }
}

TEST_F(ClientDuplexTest, AnExceptionOfTheFunctionIsThatOfTheScope) {
  const auto never = [](tcp::Stream&, std::string) -> Task<Result<>> {
    co_return co_await sleep(1h);
  };
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("piece"));
    WEIR_CO_TRY(co_await sleep(1s));
    throw std::runtime_error("no more pieces");
  };
  run_with(never, [&](Scope&, Client& client) -> Task<Result<>> {
    bool thrown = false;
    const auto talk = [&](Scope& own) -> Task<Result<>> {
      const auto response = co_await client.send(own, post_of(write));
      EXPECT_FALSE(response);
      co_return {};
    };
    try {
      static_cast<void>(co_await with_scope(talk));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    co_return {};
  });
  EXPECT_TRUE(result_);
  EXPECT_EQ(connections_, 0U);
}

TEST_F(ClientDuplexTest, TimeoutsHold) {
  const auto never = [](tcp::Stream&, std::string) -> Task<Result<>> {
    co_return co_await sleep(1h);
  };
  ClientOptions options;
  options.limits.head_timeout = 3s;
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("01234"));
    WEIR_CO_TRY(co_await sleep(5s));
    co_return co_await sink.write("56789");
  };
  const Instant start = loop_->now();
  run_with(
      never,
      [&](Scope& scope, Client& client) -> Task<Result<>> {
        const auto late = co_await client.send(scope, post_of(write, 10));
        EXPECT_TRUE(!late && late.error() == ClientError::head_timed_out);
        EXPECT_EQ(loop_->now() - start, 8s) << "counted from the end of the request";
        auto post = post_of(write, 10);
        post.set_timeout(2s);
        const auto later = co_await client.send(scope, std::move(post));
        EXPECT_TRUE(!later && later.error() == ClientError::timed_out);
        EXPECT_EQ(loop_->now() - start, 10s);
        co_return {};
      },
      std::move(options));
  EXPECT_TRUE(result_);
}

TEST_F(ClientDuplexTest, ACancellationEndsBoth) {
  Pieces pieces{1000};
  run_with(echo(1000 * piece_size), [&](Scope&, Client& client) -> Task<Result<>> {
    const auto talk = [&](Scope& own) -> Task<Result<>> {
      WEIR_CO_TRY(auto response, co_await client.send(own, post_of(pieces)));
      co_return co_await sleep(1h);
    };
    auto talking = with_scope(talk);
    const Result<> ended = co_await timeout(2s, std::move(talking));
    EXPECT_TRUE(!ended && ended.error() == Errc::timed_out);
    EXPECT_EQ(pieces.error, Errc::cancelled);
    EXPECT_EQ(client.connection_count(), 0U);
    co_return {};
  });
  EXPECT_TRUE(result_);
}

TEST_F(ClientDuplexTest, AnIdempotentTextIsSentAgainOnANewConnection) {
  constexpr std::size_t size = 100 * 1024;
  int requests = 0;
  const auto answer = [&](tcp::Stream& stream, std::string rest) -> Task<Result<>> {
    if (++requests == 2) co_return fail(Errc::closed);  // a reused connection is lost
    const std::size_t expected = requests == 1 ? 0 : size;
    while (rest.size() < expected) {
      WEIR_CO_TRY(const auto piece, co_await stream.read());
      rest += piece.text();
    }
    co_return co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  };
  run_with(answer, [&](Scope& scope, Client& client) -> Task<Result<>> {
    {
      WEIR_CO_TRY(auto first, co_await client.get(url));
      WEIR_CO_TRY(co_await size_of(first));
    }
    EXPECT_EQ(client.idle_count(), 1U);
    ClientRequest put(Method::put, url);
    put.set_body("text/plain", http::Body(std::string(size, 't')));
    WEIR_CO_TRY(auto response, co_await client.send(scope, std::move(put)));
    EXPECT_EQ(response.status(), Status::ok);
    co_return {};
  });
  EXPECT_TRUE(result_);
  EXPECT_EQ(requests, 3);
}

}  // namespace
}  // namespace weir::http::client_duplex_test
