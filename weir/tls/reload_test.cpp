// Tests that a server reads its files again: all or nothing, and without an effect on connections.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/net/files.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls {
namespace {

class ReloadTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    server_options_.identities.clear();
    server_options_.files = {{.chain = "/cert.pem", .key = "/key.pem"}};
    client_options_.verification = Verification::any_name;
  }
  Identity named(const std::string& name) const {
    return authority_.issue({.common_name = name, .names = "DNS:" + name + ".example"});
  }
  Task<> store(const Identity& identity) {
    EXPECT_TRUE(co_await files::write_file("/cert.pem", identity.chain()));
    EXPECT_TRUE(co_await files::write_file("/key.pem", identity.key()));
  }
  /// Returns the subject that a new client sees.
  Task<std::string> seen() {
    SecurePair pair = co_await secure_pair();
    co_return pair.client.tls()->peer->subject;
  }
};
INSTANTIATE_TEST_SUITE_P(On, ReloadTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ReloadTest, NewFilesServeLaterConnections) {
  client_options_.tickets = false;
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    SecurePair open = co_await secure_pair();
    EXPECT_EQ(open.client.tls()->peer->subject, "CN=old");
    co_await store(named("new"));
    EXPECT_EQ(co_await seen(), "CN=old") << "nothing is read before load()";
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(co_await seen(), "CN=new");
    EXPECT_TRUE(co_await open.client.write("still open"));
    EXPECT_EQ(co_await read_some(open.server, 10), "still open");
  };
  run(talk());
}

TEST_P(ReloadTest, FaultyFilesChangeNothing) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    EXPECT_EQ(co_await seen(), "CN=old");
    const std::uint64_t generation = server_->generation();
    // The chain is replaced before the key, as an updating program may do.
    EXPECT_TRUE(co_await files::write_file("/cert.pem", named("new").chain()));
    auto loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::key_mismatch);
    EXPECT_EQ(loaded.error().text(),
              "key_mismatch: /cert.pem, /key.pem: the key does not belong to CN=new");
    EXPECT_TRUE(co_await files::write_file("/cert.pem", "no certificate"));
    loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::invalid_certificate);
    const Identity expired = authority_.issue({.common_name = "late",
                                               .names = "DNS:late.example",
                                               .not_after = test_start - std::chrono::hours(1)});
    co_await store(expired);
    loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::certificate_expired);
    EXPECT_EQ(server_->generation(), generation);
    EXPECT_EQ(co_await seen(), "CN=old");
  };
  run(talk());
}

TEST_P(ReloadTest, TicketKeysFromOutsideReplaceThoseOfTheServer) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    const auto resumed = [this]() -> Task<std::string> {
      SecurePair pair = co_await secure_pair();
      EXPECT_TRUE(co_await pair.server.write("tickets"));
      EXPECT_EQ(co_await read_some(pair.client, 7), "tickets");
      co_return pair.server.tls()->resumed ? "resumed" : "full";
    };
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(co_await resumed(), "resumed") << "a reload keeps the keys";
    const auto keys = TicketKeys::random();
    EXPECT_TRUE(server_->set_ticket_keys(*keys));
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
  };
  run(talk());
}

}  // namespace
}  // namespace weir::tls
