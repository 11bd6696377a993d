// Tests of requests on reused connections that the server loses: none is sent again if the server
// may have a byte of it (RFC 9110 §9.2.2).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/client/client.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::client_repeat_test {
namespace {

enum class Layer : std::uint8_t { plain, tls };
void PrintTo(Layer layer, std::ostream* out) {
  *out << (layer == Layer::tls ? "tls" : "plain");
}

/// A server that answers GET, and resets the connection of a POST when a part of its body has come.
/// The buffers of the connections are smaller than the body.
class ClientRepeatTest : public testing::TestWithParam<Layer>, protected HttpFixture {
 protected:
  ClientRepeatTest() : HttpFixture({.buffer_bytes = 8192}) {
    if (GetParam() == Layer::plain) return;
    tls::SelfSigned certificate;
    certificate.names = {"127.0.0.1"};
    certificate.not_before = platform_.wall_time();
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    tls::ServerOptions options;
    options.identities = {identity};
    tls_ = std::make_shared<tls::Server>(std::move(options));
    tls::ClientOptions trusting;
    trusting.trust = {.system = false, .files = {}, .pem = identity.chain()};
    client_options_.tls = std::make_shared<tls::Client>(std::move(trusting));
  }
  void TearDown() override { shut_down(); }

  std::string url() const {
    return GetParam() == Layer::tls ? "https://127.0.0.1:81/" : "http://127.0.0.1:81/";
  }
  ClientRequest post(std::size_t size) const {
    ClientRequest request(Method::post, url());
    request.set_body("text/plain", Body(std::string(size, 'x')));
    return request;
  }
  /// Gets a page, so that the connection is idle, and then posts a body of `size` bytes. A task of
  /// a scope sends it if `in_scope`.
  Task<std::error_code> get_and_post(std::size_t size, bool in_scope) {
    Client client(client_options_);
    {
      auto page = co_await client.get(url());
      EXPECT_TRUE(page) << page.error().message();
      if (!page) co_return page.error();
      EXPECT_TRUE(co_await page->body());
    }
    EXPECT_EQ(client.idle_count(), 1U);
    std::error_code error;
    const auto talk = [&](Scope& scope) -> Task<> {
      std::optional<Result<ClientResponse>> response;
      if (in_scope) {
        response.emplace(co_await client.send(scope, post(size)));
      } else {
        response.emplace(co_await client.send(post(size)));
      }
      if (!*response) error = response->error();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, talk);
    co_return error;
  }
  std::error_code run(std::size_t size, bool in_scope) {
    std::error_code error;
    const auto all = [&](Scope& scope) -> Task<> {
      auto listener = co_await tcp::listen(Endpoint::loopback(81));
      EXPECT_TRUE(listener);
      if (!listener) co_return;
      if (tls_ != nullptr) {
        auto acceptor = co_await tls::Acceptor::make(scope, tls_);
        EXPECT_TRUE(acceptor);
        if (!acceptor) co_return;
        acceptor_ = std::move(*acceptor);
      }
      scope.spawn(accept(scope, std::move(*listener)));
      error = co_await get_and_post(size, in_scope);
      scope.cancel();
    };
    std::ignore = weir::run(*loop_, with_scope(OnFailure::isolate, all));
    acceptor_.reset();
    settle();
    return error;
  }

  std::size_t posts_ = 0;
  std::size_t body_bytes_ = 0;  ///< of all posts

 private:
  Task<> accept(Scope& scope, tcp::Listener listener) {
    for (;;) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      scope.spawn(serve_stream(std::move(*stream)));
    }
  }
  Task<> serve_stream(tcp::Stream plain) {
    auto accepted = co_await tls::accept(acceptor_, AnyStream(std::move(plain)));
    if (!accepted) co_return;
    AnyStream stream(std::move(*accepted));
    std::string input;
    for (;;) {
      const auto piece = co_await stream->read();
      if (!piece) co_return;
      input += piece->text();
      const std::size_t end = input.find("\r\n\r\n");
      if (end == input.npos) continue;
      if (input.starts_with("GET")) {
        input.clear();
        const std::string hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        if (!co_await stream->write(hello)) co_return;
        continue;
      }
      if (input.size() < end + 4 + 4'002) continue;
      ++posts_;
      body_bytes_ += input.size() - end - 4;
      EXPECT_TRUE(stream->set_close_mode(CloseMode::reset));
      co_return;
    }
  }

  ClientOptions client_options_;
  std::shared_ptr<tls::Acceptor> acceptor_;
};
INSTANTIATE_TEST_SUITE_P(Over, ClientRepeatTest, testing::Values(Layer::plain, Layer::tls),
                         [](const auto& info) {
                           return std::string(info.param == Layer::tls ? "tls" : "plain");
                         });

TEST_P(ClientRepeatTest, PostOfWhichTheServerHasAPartIsNotSentAgain) {
  for (const std::size_t size : {std::size_t{30'000}, std::size_t{100'000}}) {
    for (const bool in_scope : {false, true}) {
      posts_ = body_bytes_ = 0;
      EXPECT_EQ(run(size, in_scope), ClientError::connection_lost);
      EXPECT_EQ(posts_, 1U) << size;
      EXPECT_LT(body_bytes_, size) << "the server has read a part";
    }
  }
}

}  // namespace
}  // namespace weir::http::client_repeat_test
