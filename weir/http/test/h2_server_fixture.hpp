// A server of HTTP/2 for tests of the client: each of its connections follows a function.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

/// One connection of the server.
class H2Peer {
 public:
  explicit H2Peer(AnyStream stream) noexcept : stream_(std::move(stream)) {}

  /// Sends bytes, as far as the client is there.
  Task<> send(std::string bytes) { static_cast<void>(co_await stream_->write(bytes)); }
  /// Waits for a line that begins with `text`; see frames::Receiver.
  /// Returns: false if the client closed the connection before.
  Task<bool> receive(std::string text) {
    while (("\n" + lines_).find("\n" + text) == std::string::npos) {
      const auto piece = co_await stream_->read();
      if (!piece) co_return false;
      input_ += piece->text();
      if (!began_ && input_.size() < H2Session::client_preface.size()) continue;
      if (!std::exchange(began_, true)) {
        EXPECT_TRUE(input_.starts_with(H2Session::client_preface));
        input_.erase(0, H2Session::client_preface.size());
      }
      lines_ += receiver_.read(std::exchange(input_, {}));
    }
    co_return true;
  }
  /// Waits until the client closes the connection.
  Task<> end() { static_cast<void>(co_await receive("no such line")); }
  void close() { stream_->close(); }
  Stream& stream() noexcept { return *stream_; }
  /// Returns descriptions of all frames so far.
  const std::string& lines() const noexcept { return lines_; }

 private:
  AnyStream stream_;
  frames::Receiver receiver_;
  std::string input_;
  std::string lines_;
  bool began_ = false;
};

namespace frames {

/// Returns a head of a response with this status.
inline std::string answer(std::uint32_t stream, std::string_view status = "200",
                          std::uint8_t flags = FrameFlag::end_headers | FrameFlag::end_stream) {
  return headers(stream, block({{":status", status}}), flags);
}
/// Returns a response with a body.
inline std::string answer_text(std::uint32_t stream, std::string_view text) {
  return answer(stream, "200", FrameFlag::end_headers) + data(stream, text, FrameFlag::end_stream);
}

}  // namespace frames

/// A client of HTTP/2 with prior knowledge, beside a server at the ports 81 and 82 whose
/// connections follow scripts. With tls_, the server speaks TLS. With tunnel_times_,
/// it is a proxy that opens tunnels. Each connection begins with empty SETTINGS, or with its text
/// in greetings_.
class H2ServerFixture : public HttpTest {
 protected:
  using Script = std::function<Task<>(H2Peer&)>;
  using Use = std::function<Task<>(Client&)>;

  static ClientOptions http2(ClientLimits limits = {}) {
    ClientOptions options;
    options.plain_http2 = true;
    options.limits = limits;
    return options;
  }
  /// Returns the options for a server that is a proxy with tunnels to any http URL.
  static ClientOptions through_tunnels(ClientLimits limits = {}) {
    ClientOptions options = http2(limits);
    options.proxy.url = *Url::parse("http://127.0.0.1:81/");
    options.proxy.tunnel = true;
    options.proxy.bypass = {};
    return options;
  }
  /// Runs `use` beside a server. A connection without a script is closed immediately.
  void with_scripts(std::vector<Script> scripts, ClientOptions options, const Use& use) {
    scripts_ = std::move(scripts);
    accepted_ = 0;
    {
      Client client(std::move(options));
      const auto talk = [&](Scope& scope) -> Task<> {
        if (tls_ != nullptr) {
          auto acceptor = co_await tls::Acceptor::make(scope, tls_);
          EXPECT_TRUE(acceptor);
          if (!acceptor) co_return;
          acceptor_ = std::move(*acceptor);
        }
        for (const std::uint16_t port : {std::uint16_t{81}, std::uint16_t{82}}) {
          auto listener = co_await tcp::listen(Endpoint::loopback(port));
          EXPECT_TRUE(listener);
          if (!listener) co_return;
          scope.spawn(accept(scope, std::move(*listener)));
        }
        co_await use(client);
        EXPECT_EQ(client.connection_count(), client.idle_count()) << "all streams are given back";
        scope.cancel();
      };
      static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
    }
    acceptor_.reset();
    settle();
    EXPECT_EQ(platform_.open_descriptors(), 0U);
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
  void with_scripts(std::vector<Script> scripts, const Use& use) {
    with_scripts(std::move(scripts), http2(), use);
  }
  /// Returns the body of a response, or the first error.
  static Task<std::string> outcome(Client& client, ClientRequest request) {
    auto response = co_await client.send(std::move(request));
    if (!response) co_return response.error().message();
    EXPECT_EQ(response->version(), Version::http_2);
    const auto body = co_await response->body();
    if (!body) co_return body.error().message();
    co_return *body;
  }
  static Task<std::string> ask(Client& client, std::string_view target = "/") {
    return outcome(client, request(Method::get, target));
  }
  static ClientRequest request(Method method, std::string_view target = "/") {
    return ClientRequest(method, "http://127.0.0.1:81" + std::string(target));
  }
  static std::string text_of(ClientError error) { return make_error_code(error).message(); }

  std::size_t accepted_ = 0;
  std::vector<Duration> tunnel_times_;  ///< how long each connection's tunnel takes to open
  std::vector<std::string> greetings_;

 private:
  Task<> accept(Scope& scope, tcp::Listener listener) {
    while (true) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      const std::size_t number = accepted_++;
      if (number >= scripts_.size()) continue;
      if (number < tunnel_times_.size()) {
        scope.spawn(open_tunnel(number, std::move(*stream)));
      } else {
        scope.spawn(follow(number, std::move(*stream)));
      }
    }
  }
  Task<> open_tunnel(std::size_t number, tcp::Stream stream) {
    const auto head = co_await stream.read();
    EXPECT_TRUE(head && head->text().starts_with("CONNECT "));
    static_cast<void>(co_await sleep(tunnel_times_[number]));
    static_cast<void>(co_await stream.write("HTTP/1.1 200 OK\r\n\r\n"));
    static_cast<void>(co_await sleep(std::chrono::milliseconds(1)));  // the client speaks first
    co_await follow(number, std::move(stream));
  }
  Task<> follow(std::size_t number, tcp::Stream stream) {
    auto accepted = co_await tls::accept(acceptor_, AnyStream(std::move(stream)));
    if (!accepted) co_return;
    H2Peer peer(std::move(*accepted));
    std::string greeting =
        frames::settings() + frames::frame(FrameType::settings, FrameFlag::ack, 0);
    if (number < greetings_.size()) greeting = greetings_[number];
    co_await peer.send(std::move(greeting));
    co_await scripts_[number](peer);
  }

  std::vector<Script> scripts_;
  std::shared_ptr<tls::Acceptor> acceptor_;
};

}  // namespace weir::http
