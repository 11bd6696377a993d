// Tests of HTTPS: the server's side of TLS, and a client and a server together.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/files.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::https_test {
namespace {

using namespace std::chrono_literals;

class HttpsTest : public HttpTest, public testing::WithParamInterface<tls::RecordCode> {
 protected:
  using Talk = std::function<Task<>(Client&)>;

  HttpsTest() {
    server_options_.records = GetParam();
    use(identity_of("127.0.0.1", platform_.wall_time()));
  }

  /// Returns a certificate that is its own issuer.
  static tls::Identity identity_of(const std::string& name, WallTime not_before) {
    tls::SelfSigned certificate;
    certificate.names = {name};
    certificate.not_before = not_before;
    return tls::Identity::self_signed(certificate).value();
  }
  /// The server uses this certificate, and the client trusts it.
  void use(const tls::Identity& identity) {
    server_options_.identities = {identity};
    client_options_.trust = {.system = false, .files = {}, .pem = identity.chain()};
  }
  void serve_https(const Limits& limits = {}) {
    tls_ = std::make_shared<tls::Server>(server_options_);
    serve(limits);
  }
  void with_client(ClientOptions options, const Talk& talk) {
    options.tls = std::make_shared<tls::Client>(client_options_);
    const auto run_talk = [&]() -> Task<> {
      Client client(std::move(options));
      co_await talk(client);
    };
    weir::run(*loop_, run_talk());
  }
  void with_client(const Talk& talk) { with_client(ClientOptions(), talk); }
  static Task<std::string> ask(Client& client, std::string path = "/") {
    auto response = co_await client.get("https://127.0.0.1:80" + path);
    if (!response) co_return response.error().message();
    const auto body = co_await response->body();
    co_return body ? std::string(*body) : body.error().message();
  }
  std::uint64_t failed(tls::Error error) {
    return tls::detail::TlsCounters::of(*loop_).failed[static_cast<std::size_t>(error)].value();
  }
  auto lines_with(std::string_view text) {
    return std::ranges::count_if(platform_.logged(),
                                 [text](const auto& line) { return line.contains(text); });
  }

  tls::ServerOptions server_options_;
  tls::ClientOptions client_options_;
};

INSTANTIATE_TEST_SUITE_P(WithRecordsOf, HttpsTest,
                         testing::Values(tls::RecordCode::weir, tls::RecordCode::openssl),
                         [](const auto& info) {
                           return info.param == tls::RecordCode::weir ? "Weir" : "Openssl";
                         });

TEST_P(HttpsTest, ClientAndServerShareOneConnection) {
  routes_.get("/", [](Request& request) {
    const TlsInfo* const tls = request.tls();
    return tls == nullptr ? text("plain")
                          : text(std::string(name_of(tls->version)) + " " + tls->protocol);
  });
  routes_.post("/echo", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(*body);
  });
  serve_https();
  with_client([this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "TLSv1.3 http/1.1");
    EXPECT_EQ(co_await ask(client), "TLSv1.3 http/1.1");
    const std::string large(300'000, 'x');
    auto echoed = co_await client.post("https://127.0.0.1:80/echo", text_type, large);
    EXPECT_TRUE(echoed);
    if (!echoed) co_return;
    const auto body = co_await echoed->body();
    EXPECT_TRUE(body && *body == large);
    EXPECT_EQ(client.idle_count(), 1U);
    EXPECT_EQ(server_->counters().connections_accepted.value(), 1U);
  });
  settle();
  expect_at_rest();
}

TEST_P(HttpsTest, ServesHttp2ToAClientThatChoosesItByAlpn) {
  routes_.get("/", [] { return text("hello"); });
  serve_https();
  client_options_.protocols = {"h2"};
  tls::Client client(client_options_);
  const auto talk = [&]() -> Task<> {
    auto plain = co_await tcp::connect(address_);
    tls::Connector connector(*loop_, client);
    auto stream = co_await connector.connect(std::move(*plain), "127.0.0.1");
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_EQ(stream->tls()->protocol, "h2");
    const std::string input = frames::preface() + frames::get(1, "/");
    EXPECT_TRUE(co_await stream->write(input));
    std::string lines;
    frames::Receiver receiver;
    while (lines.find(" end\n") == lines.npos) {
      const auto bytes = co_await stream->read({.timeout = 1s});
      if (!bytes) break;
      lines += receiver.read(bytes->text());
    }
    EXPECT_TRUE(lines.ends_with("data 1 hello end\n")) << lines;
  };
  weir::run(*loop_, talk());
}

TEST_P(HttpsTest, TheClientSpeaksHttp2IfTheServerChoosesIt) {
  routes_.get("/", [](Request& request) {
    return text(request.tls()->protocol + (request.version() == Version::http_2 ? " 2" : " 1"));
  });
  routes_.post("/echo", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(*body);
  });
  client_options_.protocols = server_options_.protocols = {"h2", "http/1.1"};
  serve_https();
  with_client([this](Client& client) -> Task<> {
    const auto three = co_await all(ask(client), ask(client), ask(client));
    EXPECT_TRUE(three && std::get<0>(*three) == "h2 2" && std::get<2>(*three) == "h2 2");
    const std::string large(300'000, 'x');
    auto echoed = co_await client.post("https://127.0.0.1:80/echo", text_type, large);
    EXPECT_TRUE(echoed);
    if (!echoed) co_return;
    EXPECT_EQ(echoed->version(), Version::http_2);
    const auto body = co_await echoed->body();
    EXPECT_TRUE(body && *body == large);
    EXPECT_EQ(client.idle_count(), 1U);
    EXPECT_EQ(server_->counters().connections_accepted.value(), 1U)
        << "the requests wait for the connection that the first one opens";
  });
  settle();
  expect_at_rest();
}

TEST_P(HttpsTest, TheClientSpeaksHttp1IfTheServerKnowsNoHttp2) {
  routes_.get("/", [](Request& request) { return text(request.tls()->protocol); });
  client_options_.protocols = {"h2", "http/1.1"};
  server_options_.protocols = {"http/1.1"};
  serve_https();
  with_client([this](Client& client) -> Task<> {
    const auto three = co_await all(ask(client), ask(client), ask(client));
    EXPECT_TRUE(three && std::get<0>(*three) == "http/1.1" && std::get<2>(*three) == "http/1.1");
    EXPECT_EQ(server_->counters().connections_accepted.value(), 3U);
  });
  settle();
  expect_at_rest();
}

TEST_P(HttpsTest, ATicketResumesTheSessionOfALaterConnection) {
  routes_.get("/", [](Request& request) { return text(request.tls()->resumed ? "again" : "new"); });
  serve_https();
  with_client([](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "new");
    static_cast<void>(co_await sleep(5s));
    EXPECT_EQ(client.idle_count(), 0U);
    EXPECT_EQ(co_await ask(client), "again");
  });
}

TEST_P(HttpsTest, ReloadsDisturbNoRequest) {
  const auto made = [this](const std::string& name) {
    tls::SelfSigned certificate;
    certificate.names = {name, "127.0.0.1"};
    certificate.not_before = platform_.wall_time();
    return tls::Identity::self_signed(certificate).value();
  };
  const tls::Identity even = made("even.example");
  const tls::Identity odd = made("odd.example");
  server_options_.identities.clear();
  server_options_.files = {{.chain = "/chain", .key = "/key"}};
  server_options_.watch = {.poll_interval = 20ms, .debounce_time = 1ms};
  client_options_.trust.pem = even.chain() + odd.chain();
  const auto store = [](const tls::Identity& identity) -> Task<> {
    EXPECT_TRUE(co_await files::write_file("/chain", identity.chain()));
    static_cast<void>(co_await sleep(3ms));  // some reads find a chain with another key
    EXPECT_TRUE(co_await files::write_file("/key", identity.key()));
  };
  weir::run(*loop_, store(even));
  routes_.get("/", [] { return text("hello"); });
  serve_https();
  int requests = 0;
  int failures = 0;
  unsigned connections = 3;  // those of the clients that keep one
  bool changing = true;
  const auto ask_again = [&](bool reconnects) -> Task<> {
    ClientOptions options;
    options.tls = std::make_shared<tls::Client>(client_options_);
    std::optional<Client> client(std::in_place, options);
    while (changing) {
      if (co_await ask(*client) != "hello") ++failures;
      ++requests;
      if (reconnects) client.emplace(options);
      connections += reconnects ? 1 : 0;
      static_cast<void>(co_await sleep(4ms));
    }
  };
  const auto change = [&]() -> Task<> {
    for (int count = 1; count <= 100; ++count) {
      const tls::Identity& next = count % 2 == 0 ? even : odd;
      co_await store(next);
      static_cast<void>(co_await sleep(30ms));
    }
    changing = false;
  };
  const auto all_of_them = [&]() -> Task<> {
    const auto use = [&](Scope& scope) -> Task<> {
      for (int client = 0; client < 3; ++client) scope.spawn(ask_again(false));
      scope.spawn(ask_again(true));
      scope.spawn(change());
      co_return;
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
  };
  weir::run(*loop_, all_of_them());
  EXPECT_EQ(failures, 0);
  EXPECT_GT(requests, 1000);
  EXPECT_EQ(server_->counters().connections_accepted.value(), connections);
  EXPECT_EQ(lines_with("weir: tls: loaded changed files: "), 100);
  const auto& counters = tls::detail::TlsCounters::of(*loop_);
  EXPECT_EQ(counters.cancelled.value(), 0U);
  EXPECT_EQ(
      std::ranges::count_if(counters.failed, [](const auto& each) { return each.value() != 0; }),
      0);
}

TEST_P(HttpsTest, WrongNameIsRejectedWithItsNames) {
  use(identity_of("a.example", platform_.wall_time()));
  serve_https();
  with_client([this](Client& client) -> Task<> {
    for (int round = 0; round < 2; ++round) {
      const auto response = co_await client.get("https://127.0.0.1:80/");
      EXPECT_FALSE(response);
      EXPECT_EQ(response.error(), make_error_code(tls::Error::wrong_name));
      EXPECT_EQ(to_status(response.error()), Status::bad_gateway);
    }
    EXPECT_EQ(
        lines_with("weir: https://127.0.0.1:80: wrong_name: 127.0.0.1 is not among a.example"), 1)
        << "at most one line in a second";
    static_cast<void>(co_await sleep(1s));
    static_cast<void>(co_await client.get("https://127.0.0.1:80/"));
    EXPECT_EQ(lines_with("wrong_name"), 2);
  });
  settle();
  EXPECT_EQ(failed(tls::Error::peer_rejected_certificate), 3U) << "the server counts the alert";
}

TEST_P(HttpsTest, HostOfAUrlMayEndWithADot) {
  use(identity_of("localhost", platform_.wall_time()));
  routes_.get("/", [](Request& request) {
    return text(std::string(request.authority()) + " " + request.tls()->server_name);
  });
  serve_https();
  with_client([](Client& client) -> Task<> {
    for (const std::string host : {"localhost.", "LOCALHOST.", "localhost"}) {
      auto response = co_await client.get("https://" + host + ":80/");
      EXPECT_TRUE(response) << host << ": " << response.error().message();
      if (!response) continue;
      const auto body = co_await response->body();
      const std::string expected = host == "localhost" ? "localhost:80" : "localhost.:80";
      EXPECT_TRUE(body && *body == expected + " localhost") << host;
    }
  });
}

TEST_P(HttpsTest, UnknownCaIsRejected) {
  serve_https();
  client_options_.trust.pem = identity_of("127.0.0.1", platform_.wall_time()).chain();
  with_client([](Client& client) -> Task<> {
    const auto response = co_await client.get("https://127.0.0.1:80/");
    EXPECT_FALSE(response);
    EXPECT_EQ(response.error(), make_error_code(tls::Error::certificate_self_signed));
  });
}

TEST_P(HttpsTest, PlainServerIsNoTlsServer) {
  routes_.get("/", [] { return text("plain"); });
  serve();
  with_client([this](Client& client) -> Task<> {
    const auto response = co_await client.get("https://127.0.0.1:80/");
    EXPECT_FALSE(response);
    EXPECT_EQ(response.error().category(), tls::tls_error_category());
    auto plain = co_await client.get("http://127.0.0.1:80/");
    EXPECT_TRUE(plain) << "an origin has a scheme";
    EXPECT_EQ(lines_with("weir: https://127.0.0.1:80: "), 1);
  });
}

TEST_P(HttpsTest, ClientWithOtherTrustOpensAnotherConnection) {
  routes_.get("/", [] { return text("hello"); });
  serve_https();
  const std::string pem = client_options_.trust.pem;
  const std::string more = identity_of("other.example", platform_.wall_time()).chain();
  client_options_.trust = {.system = false, .files = {"/trust.pem"}, .pem = {}};
  for (const std::string protocol : {"http/1.1", "h2"}) {
    SCOPED_TRACE(protocol);
    client_options_.protocols = {protocol};
    ClientOptions options;
    options.tls = std::make_shared<tls::Client>(client_options_);
    const auto talk = [&]() -> Task<> {
      const std::uint64_t before = server_->counters().connections_accepted.value();
      const auto accepted = [&] {
        return server_->counters().connections_accepted.value() - before;
      };
      Client client(options);
      EXPECT_TRUE(co_await files::write_file("/trust.pem", pem));
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_TRUE(co_await options.tls->load());
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(accepted(), 1U);
      EXPECT_TRUE(co_await files::write_file("/trust.pem", pem + more));
      EXPECT_TRUE(co_await options.tls->load());
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(co_await ask(client), "hello");
      EXPECT_EQ(accepted(), 2U);
    };
    weir::run(*loop_, talk());
  }
}

TEST_P(HttpsTest, HandlerReadsTheCertificateOfTheClient) {
  const tls::Identity own = identity_of("worker.example", platform_.wall_time());
  client_options_.identity = own;
  server_options_.client_certificates = tls::ClientCertificates::required;
  server_options_.client_trust.pem = own.chain();
  routes_.get("/", [](Request& request) { return text(request.tls()->peer->subject); });
  serve_https();
  with_client(
      [](Client& client) -> Task<> { EXPECT_EQ(co_await ask(client), "CN=worker.example"); });
}

TEST_P(HttpsTest, PlainRequestGetsA400ThatNamesHttps) {
  serve_https();
  std::size_t count = 0;
  for (const std::string_view method : {"GET", "DELETE", "OPTIONS", "HEAD"}) {
    MemoryPeer& peer = connect();
    const std::string answer = talk(peer, std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
    EXPECT_EQ(answer.contains("use https://"), method != "HEAD") << answer;
    EXPECT_TRUE(peer.ended());
    EXPECT_FALSE(peer.was_reset());
    EXPECT_EQ(failed(tls::Error::plain_http), ++count);
  }
  EXPECT_EQ(talk(connect(), frames::preface()).substr(0, 13), "HTTP/1.1 400 ");
  pass(2s);
  expect_at_rest();
}

TEST_P(HttpsTest, PlainRequestThatArrivesInPiecesGetsA400) {
  serve_https();
  MemoryPeer& peer = connect();
  EXPECT_EQ(talk(peer, "PROP"), "");
  EXPECT_TRUE(talk(peer, "FIND / HTTP/1.1\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_P(HttpsTest, OtherBytesEndTheConnectionWithoutHttp) {
  serve_https();
  MemoryPeer& peer = connect();
  EXPECT_FALSE(talk(peer, "hello hello\r\n").contains("HTTP"));
  EXPECT_TRUE(peer.ended() || peer.was_reset());
  EXPECT_EQ(failed(tls::Error::plain_http), 0U);
}

TEST_P(HttpsTest, HandshakeCountsAsSilentTime) {
  serve_https({.first_request_timeout = 2s});
  MemoryPeer& silent = connect();
  pass(1999ms);
  EXPECT_FALSE(silent.ended());
  pass(1ms);
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(server_->counters().silent_connections.value(), 1U);
  settle();
  expect_at_rest();
}

TEST_P(HttpsTest, FirstRequestHasTheRestOfTheTime) {
  serve_https({.first_request_timeout = 2s});
  tls::Client client(client_options_);
  const auto connect_late = [&]() -> Task<> {
    tls::Connector connector(*loop_, client);
    auto plain = co_await tcp::connect(address_);
    EXPECT_TRUE(plain);
    static_cast<void>(co_await sleep(1500ms));
    AnyStream inner(std::move(*plain));
    auto stream = co_await connector.connect(std::move(inner), "127.0.0.1");
    EXPECT_TRUE(stream);
    const Instant begin = loop_->platform().now();
    const auto end = co_await stream->read();
    EXPECT_TRUE(!end && end.error() == Errc::end_of_stream) << "close_notify";
    EXPECT_EQ(loop_->platform().now() - begin, 500ms);
  };
  weir::run(*loop_, connect_late());
  EXPECT_EQ(server_->counters().silent_connections.value(), 1U);
}

TEST_P(HttpsTest, ConnectionBeyondTheLimitIsClosedWithoutAnAnswer) {
  serve_https({.connections_max = 1});
  MemoryPeer& first = connect();
  settle();
  MemoryPeer& second = connect();
  settle();
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(second.received(), "");
  EXPECT_FALSE(first.ended());
  EXPECT_EQ(server_->counters().connections_rejected.value(), 1U);
}

TEST_P(HttpsTest, SilentHandshakeGivesWayToANewConnection) {
  routes_.get("/new", [] { return text("new"); });
  serve_https({.connections_max = 1});
  MemoryPeer& silent = connect();
  pass(1s);
  with_client([](Client& client) -> Task<> {
    const std::string answer = co_await ask(client, "/new");
    EXPECT_EQ(answer, "new");
  });
  settle();
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(server_->counters().connections_evicted.value(), 1U);
  EXPECT_EQ(server_->counters().silent_connections.value(), 0U);
  pass(1s);
  expect_at_rest();
}

TEST_P(HttpsTest, DrainEndsSilentHandshakes) {
  serve_https();
  connect();
  settle();
  drain();
  pass(999ms);
  EXPECT_FALSE(stopped());
  pass(1ms);
  settle();
  EXPECT_TRUE(stopped());
}

TEST_P(HttpsTest, DrainOfTheServerAloneEndsSilentHandshakes) {
  serve_https();
  MemoryPeer& silent = connect();
  settle();
  server_->drain();  // as an app that stops its HTTP service
  pass(999ms);
  EXPECT_FALSE(silent.ended());
  pass(1ms);
  EXPECT_TRUE(silent.ended());
}

TEST_P(HttpsTest, CancellationEndsHandshakes) {
  serve_https();
  MemoryPeer& peer = connect();
  settle();
  stop();
  settle();
  EXPECT_TRUE(stopped());
  EXPECT_TRUE(peer.ended());
}

/// A proxy that opens one tunnel.
Task<> copy(Stream& from, Stream& to) {
  while (auto bytes = co_await from.read()) {
    if (!co_await to.write(bytes->bytes())) co_return;
  }
  static_cast<void>(to.finish_writing());
}

Task<> open_one_tunnel(tcp::Listener& listener, os::Address target) {
  auto client = co_await listener.accept();
  EXPECT_TRUE(client);
  const auto head = co_await client->read();
  EXPECT_TRUE(head && head->text().starts_with("CONNECT 127.0.0.1:80 HTTP/1.1\r\n"));
  auto server = co_await tcp::connect(target);
  EXPECT_TRUE(server);
  EXPECT_TRUE(co_await client->write("HTTP/1.1 200 OK\r\n\r\n"));
  auto up = copy(*client, *server);
  auto down = copy(*server, *client);
  static_cast<void>(co_await all(std::move(up), std::move(down)));
}

TEST_P(HttpsTest, TunnelCarriesTls) {
  routes_.get("/", [] { return text("hello"); });
  serve_https();
  ClientOptions options;
  options.proxy.url = *Url::parse("http://127.0.0.1:81/");
  options.proxy.bypass = {};
  with_client(std::move(options), [this](Client& client) -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    const auto use = [&](Scope& scope) -> Task<> {
      scope.spawn(open_one_tunnel(*listener, address_));
      EXPECT_EQ(co_await ask(client), "hello");
      scope.cancel();
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
  });
}

TEST_P(HttpsTest, ProxyMayBeAskedByHttps) {
  routes_.get("/", [](Request& request) { return text(std::string(request.authority())); });
  serve_https();
  ClientOptions options;
  options.proxy.url = *Url::parse("https://127.0.0.1:80/");
  options.proxy.bypass = {};
  with_client(std::move(options), [](Client& client) -> Task<> {
    auto response = co_await client.get("http://a.test/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_EQ(*body, "a.test");
  });
}

TEST_P(HttpsTest, UnusableFilesEndTheServerWithOneLine) {
  tls::ServerOptions options;
  options.files = {{.chain = "/nowhere/cert.pem", .key = "/nowhere/key.pem"}};
  const ServeOptions serving{.tls = std::make_shared<tls::Server>(std::move(options))};
  const auto body = [&](Scope& scope) { return http::serve(scope, routes_, serving); };
  EXPECT_NE(Runtime(platform_, {.cores = 3, .announce = false}).run_on_each_core(body), 0);
  EXPECT_EQ(lines_with("weir: tls: unreadable_file: /nowhere/cert.pem: "), 1);
}

TEST_P(HttpsTest, CoresShareOneSelfSignedCertificate) {
  tls::ServerOptions options;
  options.self_signed.emplace();
  const auto server = std::make_shared<tls::Server>(std::move(options));
  const auto body = [&](Scope&) -> Task<Result<>> {
    const auto loaded = co_await server->load_once();
    EXPECT_TRUE(loaded);
    co_return {};
  };
  EXPECT_EQ(Runtime(platform_, {.cores = 3, .announce = false}).run_on_each_core(body), 0);
  EXPECT_EQ(server->generation(), 1U);
}

TEST_P(HttpsTest, PlainServerRedirectsToHttps) {
  routes_.fallback(RedirectToHttps());
  serve();
  const auto location = [this](const std::string& target, const std::string& host) {
    const std::string answer =
        talk(connect(), "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 308 ")) << answer;
    const std::size_t start = answer.find("https://");
    return answer.substr(start, answer.find('\r', start) - start);
  };
  EXPECT_EQ(location("/a/%62?c=d", "a.example:8080"), "https://a.example/a/%62?c=d");
  EXPECT_EQ(location("/", "[::1]:80"), "https://[::1]/");
  EXPECT_EQ(location("/", "[::1]"), "https://[::1]/");
}

}  // namespace
}  // namespace weir::http::https_test
