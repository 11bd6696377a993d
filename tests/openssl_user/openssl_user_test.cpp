// Tests of Weir's TLS in a program that uses OpenSSL itself: with own contexts, own providers and
// own default properties, and with OPENSSL_cleanup(). This binary has no other tests, because they
// would change the process.
#define OPENSSL_SUPPRESS_DEPRECATED  // for RAND_get_rand_method()

#include <gtest/gtest.h>
#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/tls.hpp"

namespace weir::tls::openssl_user_test {
namespace {

/// A server and a client of Weir in memory. They use no certificate that the program has made.
class Conversation {
 public:
  explicit Conversation(RecordCode records = RecordCode::weir)
      : loop_(Loop::make(platform_, {}).value()),
        identity_(
            Identity::self_signed({.names = {"a.example"}, .not_before = platform_.wall_time()})
                .value()),
        server_(server_options(identity_, records)),
        client_(client_options(identity_)),
        acceptor_(std::in_place, *loop_, server_),
        connector_(std::in_place, *loop_, client_) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation() {
    ends_.reset();
    acceptor_.reset();
    connector_.reset();
    loop_->turn(Instant{});  // ends sends that a close has cancelled
    loop_->turn(Instant{});
  }

  /// Performs a handshake and sends a text in each direction. The streams stay open.
  /// Returns: an empty text, or what has failed.
  std::string talk() { return run(*loop_, converse()); }
  bool resumed() const { return ends_ && ends_->first.tls()->resumed; }

 private:
  static ServerOptions server_options(const Identity& identity, RecordCode records) {
    ServerOptions options;
    options.identities = {identity};
    options.records = records;
    return options;
  }
  static ClientOptions client_options(const Identity& identity) {
    ClientOptions options;
    options.trust = {.system = false, .files = {}, .pem = identity.chain()};
    return options;
  }
  Task<std::string> converse() {
    ends_.reset();
    const auto loaded = co_await server_.load_once();
    if (!loaded) co_return "load: " + loaded.error().text();
    Pair plain = co_await connect_pair();
    AnyStream server_end(std::move(plain.server));
    AnyStream client_end(std::move(plain.client));
    auto accepting = acceptor_->accept(std::move(server_end));
    auto connecting = connector_->connect(std::move(client_end), "a.example");
    auto both = co_await all(std::move(accepting), std::move(connecting));
    auto& [server, client] = both.value();
    if (!server) co_return "accept: " + server.error().text();
    if (!client) co_return "connect: " + client.error().text();
    ends_.emplace(std::move(*server), std::move(*client));
    const auto asked = co_await ends_->second.write("question");
    const std::string question = co_await read_some(ends_->first, 8);
    const auto answered = co_await ends_->first.write("answer");
    const std::string answer = co_await read_some(ends_->second, 6);
    const bool good = asked && answered && question == "question" && answer == "answer";
    co_return good ? "" : "data: " + question + ", " + answer;
  }

  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_;
  Identity identity_;
  Server server_;
  Client client_;
  std::optional<Acceptor> acceptor_;
  std::optional<Connector> connector_;
  std::optional<std::pair<Stream, Stream>> ends_;  // the server and the client
};

std::string names_of_providers() {
  std::string names;
  OSSL_PROVIDER_do_all(
      nullptr,
      [](OSSL_PROVIDER* provider, void* out) {
        static_cast<std::string*>(out)->append(OSSL_PROVIDER_get0_name(provider)).append(" ");
        return 1;
      },
      &names);
  return names;
}

/// Everything of OpenSSL that is shared by the process, as far as a program can ask for it.
struct SharedState {
  CRYPTO_malloc_fn allocate = nullptr;
  CRYPTO_realloc_fn resize = nullptr;
  CRYPTO_free_fn release = nullptr;
  const RAND_METHOD* random = RAND_get_rand_method();
  OSSL_LIB_CTX* context = OSSL_LIB_CTX_get0_global_default();
  std::string providers = names_of_providers();
  std::string hmac;

  SharedState() {
    CRYPTO_get_mem_functions(&allocate, &resize, &release);
    EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    if (mac != nullptr) hmac = OSSL_PROVIDER_get0_name(EVP_MAC_get0_provider(mac));
    EVP_MAC_free(mac);
  }
  bool operator==(const SharedState&) const = default;
};

unsigned give_key(unsigned char* target, unsigned room) {
  constexpr unsigned size = 16;
  if (room < size) return 0;
  std::fill_n(target, size, static_cast<unsigned char>(7));
  return size;
}
unsigned key_of_client(SSL*, const char*, char* name, unsigned, unsigned char* target,
                       unsigned room) {
  name[0] = 'p';
  name[1] = '\0';
  return give_key(target, room);
}
unsigned key_of_server(SSL*, const char*, unsigned char* target, unsigned room) {
  return give_key(target, room);
}

/// Performs a handshake of the program with itself, in the default context.
bool program_connects() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  &SSL_CTX_free);
  if (context == nullptr) return false;
  SSL_CTX_set_psk_client_callback(context.get(), &key_of_client);
  SSL_CTX_set_psk_server_callback(context.get(), &key_of_server);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), &SSL_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> server(SSL_new(context.get()), &SSL_free);
  BIO* client_end = nullptr;
  BIO* server_end = nullptr;
  if (BIO_new_bio_pair(&client_end, 0, &server_end, 0) != 1) return false;
  SSL_set_bio(client.get(), client_end, client_end);
  SSL_set_bio(server.get(), server_end, server_end);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  for (int flight = 0; flight < 4; ++flight) {
    SSL_do_handshake(client.get());
    SSL_do_handshake(server.get());
  }
  return SSL_is_init_finished(client.get()) == 1 && SSL_is_init_finished(server.get()) == 1;
}

/// A provider of the program, which has nothing.
int begin_provider(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** functions,
                   void** provider) {
  static const OSSL_DISPATCH none{0, nullptr};
  static char object = 0;
  *functions = &none;
  *provider = &object;
  return 1;
}

TEST(OpensslUser, FindsItsProcessAsItWas) {
  const SharedState before;
  EXPECT_EQ(before.hmac, "default");
  {
    Conversation conversation;
    EXPECT_EQ(conversation.talk(), "");
    EXPECT_EQ(conversation.talk(), "");
    EXPECT_TRUE(conversation.resumed());
  }
  EXPECT_TRUE(SharedState() == before);
  EXPECT_EQ(OSSL_PROVIDER_available(nullptr, "weir"), 0);
  EXPECT_EQ(EVP_MAC_fetch(nullptr, "HMAC", "provider=weir"), nullptr);
}

TEST(OpensslUser, ConnectsBesideWeir) {
  Conversation conversation;
  EXPECT_TRUE(program_connects());
  EXPECT_EQ(conversation.talk(), "");
  EXPECT_TRUE(program_connects());
  EXPECT_EQ(conversation.talk(), "");
  std::array<unsigned char, 64> target{};
  unsigned size = 0;
  EXPECT_NE(HMAC(EVP_sha512(), "key", 3, target.data(), 1, target.data(), &size), nullptr);
  EXPECT_EQ(size, 64U);
}

TEST(OpensslUser, MayChooseTheRecordsOfOpenssl) {
  Conversation conversation(RecordCode::openssl);
  EXPECT_EQ(conversation.talk(), "");
  EXPECT_EQ(conversation.talk(), "");
  EXPECT_TRUE(conversation.resumed());
}

TEST(OpensslUser, MayUseOtherThreads) {
  for (int round = 0; round < 2; ++round) {
    std::thread other([] {
      Conversation conversation;
      EXPECT_EQ(conversation.talk(), "");
      EXPECT_TRUE(program_connects());
    });
    other.join();
  }
}

/// Runs `program` in a process of its own, in which OpenSSL has not been used. Its result is the
/// exit status.
class OpensslUserProcess : public testing::Test {
 protected:
  OpensslUserProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(OpensslUserProcess, MayChangeItsDefaultContextFirst) {
  const auto program = [] {
    // Nothing can be fetched from the default context after this.
    OSSL_PROVIDER_add_builtin(nullptr, "mine", &begin_provider);
    OSSL_PROVIDER* const mine = OSSL_PROVIDER_load(nullptr, "mine");
    const bool set = mine != nullptr && EVP_set_default_properties(nullptr, "provider=mine") == 1;
    EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    if (!set || mac != nullptr) return 2;
    Conversation conversation;
    const bool good = conversation.talk().empty() && conversation.talk().empty() &&
                      names_of_providers() == "mine ";
    OSSL_PROVIDER_unload(mine);
    return good ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayChangeItsDefaultContextLater) {
  const auto program = [] {
    Conversation conversation;
    if (!conversation.talk().empty()) return 2;
    OSSL_PROVIDER* const nothing = OSSL_PROVIDER_load(nullptr, "null");
    if (nothing == nullptr) return 3;
    if (EVP_set_default_properties(nullptr, "provider=null") != 1) return 4;
    const bool good = conversation.talk().empty() && Conversation().talk().empty();
    OSSL_PROVIDER_unload(nothing);
    return good ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayDemandFips) {
  const auto program = [] {
    if (EVP_set_default_properties(nullptr, "fips=yes") != 1) return 2;
    // No provider for FIPS is loaded. Weir takes no algorithm of another one.
    const auto identity = Identity::self_signed({});
    return !identity && identity.error() == Error::library_failure ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayCleanUpWhileObjectsOfWeirLive) {
  const auto program = [] {
    auto conversation = std::make_unique<Conversation>();
    if (!conversation->talk().empty() || !program_connects()) return 1;
    OPENSSL_cleanup();
    const std::string failed = conversation->talk();
    conversation.reset();
    return failed.empty() ? 2 : 0;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayCleanUpBeforeWeirIsUsed) {
  const auto program = [] {
    if (!program_connects()) return 2;
    OPENSSL_cleanup();
    // OpenSSL works no more, and Weir says so.
    const auto identity = Identity::self_signed({});
    return !identity && identity.error() == Error::library_failure ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayLeaveObjectsOfWeirToTheExit) {
  const auto program = [] {
    // The program is the first to use OpenSSL, so its cleanup runs after this object's destructor.
    OPENSSL_init_ssl(0, nullptr);
    static Conversation conversation;
    return conversation.talk().empty() ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
  const auto other = [] {
    // The destructor runs after the cleanup of OpenSSL.
    static std::unique_ptr<Conversation> conversation;
    conversation = std::make_unique<Conversation>();
    return conversation->talk().empty() ? 0 : 1;
  };
  EXPECT_EXIT(std::exit(other()), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUserProcess, MayLetOpensslEraseItsMemory) {
  const auto program = [] {
    if (!erase_openssl_memory() || !erase_openssl_memory()) return 1;
    return Conversation().talk().empty() ? 0 : 2;
  };
  EXPECT_EXIT(std::exit(program()), testing::ExitedWithCode(0), "");
  const auto late = [] {
    OPENSSL_free(OPENSSL_malloc(1));
    return erase_openssl_memory() ? 1 : 0;
  };
  EXPECT_EXIT(std::exit(late()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::tls::openssl_user_test
