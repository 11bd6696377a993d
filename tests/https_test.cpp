// Tests of HTTPS between processes: the options of http::run(), and the client that verifies.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tests/server.hpp"
#include "weir/http/client/client.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls.hpp"

namespace weir::tests {
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
  static tls::ClientOptions trusting(const std::string& pem) {
    tls::ClientOptions options;
    options.trust = {.system = false, .files = {}, .pem = pem};
    return options;
  }

  os::TemporaryTree folder_;
};
INSTANTIATE_TEST_SUITE_P(On, Https, testing::ValuesIn(all_backends), name_of);

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
}

}  // namespace
}  // namespace weir::tests
