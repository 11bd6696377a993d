// Tests that a build without OpenSSL refuses TLS with one clear error.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/detail/absent/no_openssl.hpp"
#include "weir/tls/server.hpp"

namespace weir::tls::endpoints_test {
namespace {

const std::string reason = "library_failure: this build of Weir has no OpenSSL";

class TlsAbsentTest : public NetTest {};
INSTANTIATE_TEST_SUITE_P(On, TlsAbsentTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(TlsAbsentTest, LogsTheReasonOnceWhenAServerIsLoaded) {
  Server server(ServerOptions{});
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Outcome<> loaded = run(server.load_once());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error(), Error::library_failure);
    EXPECT_EQ(loaded.error().text(), reason);
  }
  EXPECT_EQ(memory_->logged(), std::vector<std::string>{"weir: tls: " + reason});
  EXPECT_FALSE(server.loaded());
}

using MadeAcceptor = Outcome<std::shared_ptr<Acceptor>>;

Task<> make_acceptor(Scope& scope, std::shared_ptr<Server> server, MadeAcceptor& made) {
  made = co_await Acceptor::make(scope, std::move(server));
}

TEST_P(TlsAbsentTest, MakesNoAcceptorForAServerWithTls) {
  MadeAcceptor made;
  std::ignore = run(with_scope(make_acceptor, std::shared_ptr<Server>(), std::ref(made)));
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, nullptr);
  std::ignore =
      run(with_scope(make_acceptor, std::make_shared<Server>(ServerOptions{}), std::ref(made)));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), Error::library_failure);
}

TEST_P(TlsAbsentTest, PassesAPlainStreamOnWithoutAnAcceptor) {
  Pair pair = run(connect_pair());
  auto passed = run(accept(nullptr, AnyStream(std::move(pair.server))));
  ASSERT_TRUE(passed);
  EXPECT_EQ((**passed).tls(), nullptr);
}

TEST_P(TlsAbsentTest, RefusesEachConnectionOfAClient) {
  Client client;
  EXPECT_EQ(run(client.load()).error().text(), reason);
  Connector connector(*loop_, client);
  Pair pair = run(connect_pair());
  const auto connected = run(connector.connect(AnyStream(std::move(pair.client)), "localhost"));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().text(), reason);
}

TEST(TlsAbsent, MakesNoIdentities) {
  EXPECT_EQ(Identity::from_pem("", "").error().text(), reason);
  EXPECT_EQ(Identity::self_signed({}).error().text(), reason);
}

TEST(TlsAbsent, EndsAProgramWhoseCommandLineAsksForTls) {
  std::string name = "service";
  std::string option = "--tls-self-signed";
  char* arguments[] = {name.data(), option.data(), nullptr};
  EXPECT_EXIT(ProgramOptions::from_args(2, arguments), testing::ExitedWithCode(1),
              "service: tls: library_failure: this build of Weir has no OpenSSL");
}

}  // namespace
}  // namespace weir::tls::endpoints_test
