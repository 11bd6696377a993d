// Cancels TLS handshakes, and reads and writes of TLS streams, at any time on every real backend;
// see tests/cancel_sweep.hpp.
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls.hpp"

namespace weir::tests::cancel_sweep_tls_test {
namespace {

constexpr std::string_view host = "a.example";

/// A certificate that is valid by the real and by the simulated clock.
const tls::Identity& identity() {
  static const tls::Identity made = [] {
    tls::SelfSigned certificate;
    certificate.names = {std::string(host)};
    certificate.lifetime = std::chrono::hours(24 * 365 * 150);
    return tls::Identity::self_signed(certificate).value();
  }();
  return made;
}

tls::ServerOptions server_options() {
  tls::ServerOptions options;
  options.identities = {identity()};
  return options;
}

tls::ClientOptions client_options() {
  tls::ClientOptions options;
  options.trust = {.system = false, .files = {}, .pem = identity().chain()};
  return options;
}

/// Both sides on one core.
struct Sides {
  explicit Sides(Loop& loop)
      : server(server_options()),
        client(client_options()),
        acceptor(loop, server),
        connector(loop, client) {}

  tls::Server server;
  tls::Client client;
  tls::Acceptor acceptor;
  tls::Connector connector;
};

/// Returns true for a success. A failure must be Errc::cancelled.
template <class T>
bool finished(const tls::Outcome<T>& outcome) {
  if (!outcome) {
    EXPECT_EQ(outcome.error().code(), Errc::cancelled) << outcome.error().text();
  }
  return outcome.has_value();
}

Task<> accept(Sides* sides, AnyStream stream, std::optional<tls::Stream>* result) {
  auto accepted = co_await sides->acceptor.accept(std::move(stream));
  if (accepted) result->emplace(std::move(*accepted));
}

Task<> connect(Sides* sides, AnyStream stream, std::optional<tls::Stream>* result) {
  auto connected = co_await sides->connector.connect(std::move(stream), std::string(host));
  if (connected) result->emplace(std::move(*connected));
}

/// The two ends of one TLS connection.
struct SecurePair {
  std::optional<tls::Stream> near;  // the server
  std::optional<tls::Stream> far;
};

/// Performs the handshake without a cancellation.
Task<> shake(Sides& sides, SweepEnvironment& env, SecurePair& secured) {
  Pair plain = co_await connect_pair();
  AnyStream near(std::move(plain.near));
  AnyStream far(std::move(plain.far));
  env.spawn(accept(&sides, std::move(near), &secured.near));
  env.spawn(connect(&sides, std::move(far), &secured.far));
  co_await env.wait_until_idle();
  EXPECT_TRUE(secured.near && secured.far);
}

Task<> loading_a_server(CancelInjector& injector, SweepEnvironment&) {
  tls::Server server(server_options());
  const bool loaded = finished(co_await injector.run_with_cancel(server.load()));
  EXPECT_EQ(server.loaded(), loaded);
}

Task<> loading_a_server_once(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("chain", identity().chain());
  folder.write("key", identity().key());
  tls::ServerOptions options;
  options.files = {{.chain = folder.path("chain"), .key = folder.path("key")}};
  tls::Server server(std::move(options));
  const bool loaded = finished(co_await injector.run_with_cancel(server.load_once()));
  EXPECT_EQ(server.loaded(), loaded);
  EXPECT_TRUE(co_await server.load_once());
  EXPECT_EQ(server.generation(), 1U);
}

Task<> loading_a_client(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("chain", identity().chain());
  tls::ClientOptions options;
  options.trust = {.system = false, .files = {folder.path("chain")}, .pem = {}};
  tls::Client client(std::move(options));
  std::ignore = finished(co_await injector.run_with_cancel(client.load()));
}

Task<> watching_the_files(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("chain", identity().chain());
  folder.write("key", identity().key());
  tls::ServerOptions options;
  options.files = {{.chain = folder.path("chain"), .key = folder.path("key")}};
  options.watch = {.poll_interval = short_delay, .debounce_time = short_delay / 2};
  tls::Server server(std::move(options));
  EXPECT_TRUE(co_await server.load());
  folder.write("chain", identity().chain() + "\n");
  std::ignore = co_await injector.run_with_cancel(timeout(4 * short_delay, server.watch()));
  EXPECT_LE(server.generation(), 2U);
}

Task<> accepting(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  EXPECT_TRUE(co_await sides.server.load());
  {
    Pair plain = co_await connect_pair();
    AnyStream near(std::move(plain.near));
    AnyStream far(std::move(plain.far));
    std::optional<tls::Stream> client;
    env.spawn(connect(&sides, std::move(far), &client));
    auto accepting = sides.acceptor.accept(std::move(near));
    auto accepted = co_await injector.run_with_cancel(std::move(accepting));
    if (finished(accepted)) {
      EXPECT_NE(accepted->tls(), nullptr);
    }
    co_await env.wait_until_idle();
  }
  SecurePair later;
  co_await shake(sides, env, later);
}

Task<> making_an_acceptor(CancelInjector& injector, SweepEnvironment& env) {
  const auto server = std::make_shared<tls::Server>(server_options());
  const auto make = [&](Scope& scope) -> Task<> {
    auto making = tls::Acceptor::make(scope, server);
    const auto made = co_await injector.run_with_cancel(std::move(making));
    EXPECT_EQ(server->loaded(), finished(made));
  };
  std::ignore = co_await with_scope(OnFailure::isolate, make);
  co_await env.wait_until_idle();
}

Task<> accepting_any_stream(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  const auto server = std::make_shared<tls::Server>(server_options());
  EXPECT_TRUE(co_await server->load());
  const auto acceptor = std::make_shared<tls::Acceptor>(env.loop(), *server);
  Pair plain = co_await connect_pair();
  AnyStream near(std::move(plain.near));
  AnyStream far(std::move(plain.far));
  std::optional<tls::Stream> client;
  env.spawn(connect(&sides, std::move(far), &client));
  auto accepting = tls::accept(acceptor, std::move(near));
  auto accepted = co_await injector.run_with_cancel(std::move(accepting));
  if (finished(accepted)) {
    EXPECT_NE((*accepted)->tls(), nullptr);
  }
  co_await env.wait_until_idle();
}

Task<> connecting(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  EXPECT_TRUE(co_await sides.server.load());
  {
    Pair plain = co_await connect_pair();
    AnyStream near(std::move(plain.near));
    AnyStream far(std::move(plain.far));
    std::optional<tls::Stream> server;
    env.spawn(accept(&sides, std::move(near), &server));
    auto connecting = sides.connector.connect(std::move(far), std::string(host));
    auto connected = co_await injector.run_with_cancel(std::move(connecting));
    if (finished(connected)) {
      EXPECT_NE(connected->tls(), nullptr);
    }
    co_await env.wait_until_idle();
  }
  SecurePair later;
  co_await shake(sides, env, later);
}

Task<> write_late(tls::Stream* stream) {
  co_await yield();
  EXPECT_TRUE(co_await stream->write("late"));
}

Task<> reading(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  EXPECT_TRUE(co_await sides.server.load());
  SecurePair pair;
  co_await shake(sides, env, pair);
  env.spawn(write_late(&*pair.far));
  const auto bytes = co_await injector.run_with_cancel(as_task(pair.near->read()));
  co_await env.wait_until_idle();
  std::string whole(succeeded(bytes) ? bytes->text() : std::string_view());
  while (whole.size() < 4) {
    const auto more = co_await pair.near->read();
    EXPECT_TRUE(more) << "behind " << whole;
    if (!more) break;
    whole += more->text();
  }
  EXPECT_EQ(whole, "late");
}

Task<> drop_all(tls::Stream* stream) {
  while (const auto bytes = co_await stream->read()) {
  }
}

Task<> writing(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  EXPECT_TRUE(co_await sides.server.load());
  SecurePair pair;
  co_await shake(sides, env, pair);
  const std::string much(2'000'000, 'x');
  env.spawn(drop_all(&*pair.far));
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(pair.near->write(much))));
  pair.near->close();
  co_await env.wait_until_idle();
}

Task<> count_all(tls::Stream* stream, std::size_t* count, std::error_code* end) {
  for (;;) {
    const auto bytes = co_await stream->read();
    if (!bytes) {
      *end = bytes.error();
      co_return;
    }
    *count += bytes->size();
  }
}

Task<> writing_the_last_bytes(CancelInjector& injector, SweepEnvironment& env) {
  Sides sides(env.loop());
  EXPECT_TRUE(co_await sides.server.load());
  SecurePair pair;
  co_await shake(sides, env, pair);
  const std::string much(2'000'000, 'x');
  std::size_t count = 0;
  std::error_code end;
  env.spawn(count_all(&*pair.far, &count, &end));
  auto writing = as_task(pair.near->write(much).last());
  const bool written = succeeded(co_await injector.run_with_cancel(std::move(writing)));
  if (written) {
    EXPECT_TRUE(pair.near->finish_writing());
  } else {
    pair.near->close();
  }
  co_await env.wait_until_idle();
  if (written) {
    EXPECT_EQ(count, much.size());
    EXPECT_EQ(end, Errc::end_of_stream);
  }
}

constexpr std::array of_tls = {
    SweepCase{"tls::Server::load", loading_a_server},
    SweepCase{"tls::Server::load_once", loading_a_server_once},
    SweepCase{"tls::Server::watch", watching_the_files},
    SweepCase{"tls::Client::load", loading_a_client},
    SweepCase{"tls::Acceptor::accept", accepting},
    SweepCase{"tls::Acceptor::make", making_an_acceptor},
    SweepCase{"tls::accept", accepting_any_stream},
    SweepCase{"tls::Connector::connect", connecting},
    SweepCase{"tls::Stream::read", reading},
    SweepCase{"tls::Stream::write", writing},
    SweepCase{"Write::last over TLS", writing_the_last_bytes},
};

class CancelSweepOfTls : public CancelSweep {};
INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfTls, testing::ValuesIn(sampled_backends()), name_of);

TEST_P(CancelSweepOfTls, HandshakesAndStreams) {
  sweep_all(of_tls);
}
TEST(CancelSweepInTheWorld, HandshakesAndTlsStreams) {
  sweep_all_in_world(of_tls);
}

}  // namespace
}  // namespace weir::tests::cancel_sweep_tls_test
