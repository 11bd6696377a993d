// Tests of HTTPS between processes: the options of http::run(), and the client that verifies.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/server.hpp"
#include "weir/http/client/client.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/net/tcp.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls.hpp"

namespace weir::tests::https_test {
namespace {

class Https : public EachBackend {
 protected:
  /// A certificate for `name`, in two files.
  struct Files {
    tls::Identity identity;
    std::string chain;
    std::string key;
  };
  Files make_files(const std::string& name) {
    tls::SelfSigned certificate;
    certificate.names = {name};
    certificate.not_before = OsPlatform().wall_time();
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    folder_.write(name + ".pem", identity.chain());
    folder_.write(name + ".key", identity.key());
    return {identity, folder_.path(name + ".pem"), folder_.path(name + ".key")};
  }

  /// Asks the server at `port`. Returns the body, or the error.
  std::string ask(std::uint16_t port, tls::ClientOptions options) const {
    std::string answer;
    const auto talk = [&](Scope&) -> Task<> {
      http::ClientOptions with_tls;
      with_tls.tls = std::make_shared<tls::Client>(std::move(options));
      http::Client client(std::move(with_tls));
      for (int request = 0; request < 2; ++request) {
        auto response =
            co_await client.get("https://127.0.0.1:" + std::to_string(port) + "/hello/TLS");
        answer = response ? "" : response.error().message();
        if (!response) co_return;
        const auto body = co_await response->body();
        answer = body ? std::string(*body) : body.error().message();
      }
      EXPECT_EQ(client.connection_count(), 1U);
    };
    const RuntimeOptions one{
        .cores = 1, .backend = to_backend_choice(GetParam()), .announce = false};
    EXPECT_EQ(Runtime(one).run_on_each_core(talk), 0);
    return answer;
  }
  /// Opens a WebSocket of the server at `port`. Returns the error.
  std::string open_websocket(std::uint16_t port, bool http2) const {
    std::string error;
    const auto talk = [&](Scope&) -> Task<> {
      tls::ClientOptions anyone;
      anyone.verification = tls::Verification::none;
      http::ClientOptions with_tls;
      with_tls.tls = std::make_shared<tls::Client>(std::move(anyone));
      http::Client client(std::move(with_tls));
      http::ClientWebSocketOptions options;
      options.http2 = http2;
      const auto serve = [](http::WebSocket&) -> Task<Result<>> { co_return {}; };
      const auto ended = co_await client.websocket("wss://127.0.0.1:" + std::to_string(port) + "/",
                                                   serve, options);
      error = ended ? "" : ended.error().message();
    };
    const RuntimeOptions one{
        .cores = 1, .backend = to_backend_choice(GetParam()), .announce = false};
    EXPECT_EQ(Runtime(one).run_on_each_core(talk), 0);
    return error;
  }
  static tls::ClientOptions trusting(const std::string& pem) {
    tls::ClientOptions options;
    options.trust = {.system = false, .files = {}, .pem = pem};
    return options;
  }

  os::TemporaryTree folder_;
};
INSTANTIATE_TEST_SUITE_P(On, Https, testing::ValuesIn(sampled_backends()), name_of);

TEST_P(Https, ProgramMakesACertificateForDevelopment) {
  Server server("hello", GetParam(), {"--tls-self-signed"});
  tls::ClientOptions anyone;
  anyone.verification = tls::Verification::none;
  EXPECT_EQ(ask(server.port(), std::move(anyone)), "Hello, TLS!\n");
  EXPECT_EQ(ask(server.port(), {}), "certificate_self_signed") << "the default verifies";
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(Https, ProgramServesTheCertificatesOfItsFiles) {
  const Files other = make_files("other.example");
  const Files own = make_files("127.0.0.1");
  Server server("hello", GetParam(),
                {"--tls-cert", own.chain, "--tls-key", own.key, "--tls-cert", other.chain,
                 "--tls-key", other.key});
  EXPECT_EQ(ask(server.port(), trusting(own.identity.chain())), "Hello, TLS!\n");
  EXPECT_EQ(ask(server.port(), trusting(other.identity.chain())), "certificate_self_signed");
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(Https, ProgramDemandsCertificatesOfItsClients) {
  const Files trusted = make_files("trusted.example");
  Server server("hello", GetParam(), {"--tls-self-signed", "--tls-client-ca", trusted.chain});
  tls::ClientOptions unknown;
  unknown.verification = tls::Verification::none;
  EXPECT_EQ(ask(server.port(), std::move(unknown)), "peer_alert");
  for (const bool http2 : {false, true}) {
    EXPECT_EQ(open_websocket(server.port(), http2), "peer_alert") << http2;
  }
  EXPECT_EQ(server.stop(), 0);
}

/// One core of a client that connects again and again, with the tickets of earlier connections.
class Visitor {
 public:
  /// A connection that sends `sent`, and receives all that the server answers.
  struct Visit {
    std::string answer;
    std::string subject;
    bool resumed = false;
  };
  /// Calls `visit` until it returns false. `sent` ends the connection on the server's side.
  template <class Body>
  static void run(std::string_view backend, std::uint16_t port, std::string sent, Body body) {
    const auto talk = [&](Scope& scope) -> Task<> {
      tls::Client anyone({.verification = tls::Verification::none});
      tls::Connector connector(scope.loop(), anyone);
      for (bool more = true; more;) {
        auto plain = co_await tcp::connect(os::Address::loopback(port));
        EXPECT_TRUE(plain);
        if (!plain) co_return;
        AnyStream inner(std::move(*plain));
        auto stream = co_await connector.connect(std::move(inner), "localhost");
        EXPECT_TRUE(stream) << stream.error().text();
        if (!stream) co_return;
        Visit visit;
        visit.subject = stream->tls()->peer->subject;
        visit.resumed = stream->tls()->resumed;
        EXPECT_TRUE(co_await stream->write(sent));
        if (!sent.starts_with("GET")) {
          EXPECT_TRUE(stream->finish_writing());
        }
        while (auto bytes = co_await stream->read()) visit.answer += bytes->text();
        more = body(visit);
      }
    };
    const RuntimeOptions one{
        .cores = 1, .backend = to_backend_choice({backend}), .announce = false};
    EXPECT_EQ(Runtime(one).run_on_each_core(talk), 0);
  }
};

constexpr const char* last_request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST_P(Https, ProgramsOfEachKindTakeTheOptions) {
  struct Kind {
    const char* example;
    const char* sent;
    const char* answer;
  };
  // A server with a main function of its own, an app, a raw TCP server.
  const std::vector<Kind> kinds{{"report", last_request, "Hello, World!"},
                                {"services_notes", last_request, "HTTP/1.1 404"},
                                {"echo", "some bytes", "some bytes"}};
  for (const Kind& each : kinds) {
    SCOPED_TRACE(each.example);
    Server server(each.example, GetParam(), {"--tls-self-signed"});
    int visits = 0;
    Visitor::run(GetParam().option, server.port(), each.sent, [&](const Visitor::Visit& visit) {
      EXPECT_TRUE(visit.answer.contains(each.answer)) << visit.answer;
      EXPECT_EQ(visit.resumed, visits > 0);
      return ++visits < 2;
    });
    EXPECT_EQ(server.stop(), 0);
  }
}

TEST_P(Https, WorkersResumeTheSessionsOfEachOther) {
  Process supervisor = Process::example(
      "processes", {"--processes", "2", "--cores", "2", "--port", "0", "--address", "127.0.0.1",
                    "--backend", std::string(GetParam().option), "--tls-self-signed"});
  const std::uint16_t port = supervisor.wait_for_port().value_or(0);
  std::set<std::string> workers;
  int visits = 0;
  int at_both = 0;
  Visitor::run(GetParam().option, port, last_request, [&](const Visitor::Visit& visit) {
    workers.insert(visit.answer.substr(visit.answer.rfind(' ')));
    EXPECT_EQ(visit.resumed, visits > 0) << "visit " << visits << " at " << workers.size();
    if (workers.size() == 2) ++at_both;
    return ++visits < 200 && at_both < 10;
  });
  EXPECT_EQ(workers.size(), 2U);
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

TEST_P(Https, NewerProcessResumesTheSessionsOfTheOlderOne) {
  std::vector<std::string> arguments{"--hot-restart",    folder_.path("meet"),
                                     "--cores",          "1",
                                     "--port",           "0",
                                     "--address",        "127.0.0.1",
                                     "--backend",        std::string(GetParam().option),
                                     "--tls-self-signed"};
  Process older = Process::example("hot_restart", arguments);
  const std::uint16_t port = older.wait_for_port().value_or(0);
  EXPECT_TRUE(older.wait_for("a newer process can take over")) << older.errors();
  arguments.at(5) = std::to_string(port);
  std::optional<Process> newer;
  std::set<std::string> processes;
  int visits = 0;
  Visitor::run(GetParam().option, port, last_request, [&](const Visitor::Visit& visit) {
    EXPECT_EQ(visit.resumed, visits > 0) << "visit " << visits;
    processes.insert(visit.answer.substr(visit.answer.rfind(' ')));
    if (++visits == 3) {
      newer.emplace(Process::example("hot_restart", arguments));
      EXPECT_TRUE(newer->wait_for("this process accepts connections")) << newer->errors();
      EXPECT_EQ(older.wait_for_exit(), 0) << older.errors();
    }
    return visits < 6;
  });
  EXPECT_EQ(processes.size(), 2U);
}

TEST_P(Https, ChangedSymbolicLinkIsFollowedWithoutARestart) {
  namespace fs = std::filesystem;
  const Files first = make_files("first.example");
  const Files second = make_files("second.example");
  for (const auto& [version, files] : {std::pair("v1", &first), std::pair("v2", &second)}) {
    folder_.write(std::string(version) + "/chain.pem", files->identity.chain());
    folder_.write(std::string(version) + "/key.pem", files->identity.key());
  }
  // Kubernetes and certbot replace a link by a rename.
  fs::create_directory_symlink("v1", folder_.path("now"));
  fs::create_directory_symlink("v2", folder_.path("next"));
  Server server(
      "hello", GetParam(),
      {"--tls-cert", folder_.path("now/chain.pem"), "--tls-key", folder_.path("now/key.pem")});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int visits = 0;
  Visitor::run(GetParam().option, server.port(), last_request, [&](const Visitor::Visit& visit) {
    if (++visits == 1) {
      EXPECT_EQ(visit.subject, "CN=first.example");
      fs::rename(folder_.path("next"), folder_.path("now"));
      return true;
    }
    const bool changed = server.process().errors().contains("weir: tls: loaded changed files: ");
    const bool late = std::chrono::steady_clock::now() > end;
    EXPECT_FALSE(late) << server.process().errors();
    return !changed && !late;
  });
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(Https, WrongKeyEndsTheProgramWithOneLine) {
  const Files one = make_files("one.example");
  const Files two = make_files("two.example");
  Process program = Process::example(
      "hello", {"--port", "0", "--cores", "2", "--tls-cert", one.chain, "--tls-key", two.key});
  EXPECT_EQ(program.wait_for_exit(), 1);
  const std::string line = "weir: tls: key_mismatch: " + one.chain + ", " + two.key;
  const std::size_t found = program.errors().find(line);
  EXPECT_NE(found, std::string::npos) << program.errors();
  EXPECT_EQ(program.errors().find(line, found + 1), std::string::npos) << "one line for all cores";
}

TEST_P(Https, PlainPortSendsClientsToTheSecureOne) {
  const os::Address address = free_address();
  const std::string host = address.to_string().substr(0, address.to_string().rfind(':'));
  Server server("https", GetParam(), {"--address", host, "--port", "8080"});
  const auto plain = Client(address.with_port(8080))
                         .exchange("GET /?a HTTP/1.1\r\nHost: " + host + ":8080\r\n\r\n");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->status, 308);
  EXPECT_EQ(plain->header("Location"), "https://" + host + ":8443/?a");
  EXPECT_EQ(server.stop(), 0);
  EXPECT_FALSE(server.process().errors().contains("a task failed")) << server.process().errors();
}

}  // namespace
}  // namespace weir::tests::https_test
