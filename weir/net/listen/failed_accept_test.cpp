// Tests of the errors that a listener returns if its backend cannot accept.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::failed_accept_test {
namespace {

/// The failures of a FailingBackend.
struct Failures {
  std::error_code accept_error;  ///< the error of accepts; no error: none fails
  int accepts_that_fail = 1000;  ///< the number of accepts that fail
  int adopt_fails = 0;           ///< the position of the stream that finds no memory; 0: none
  std::function<void()> on_adopt_failure;
};

/// A backend that fails as requested. Another backend does everything else.
class FailingBackend final : public loop::Backend {
 public:
  FailingBackend(std::unique_ptr<loop::Backend> other, Failures& failures) noexcept
      : other_(std::move(other)), failures_(failures) {}

  std::string_view name() const noexcept override { return other_->name(); }
  Result<loop::Socket*> adopt(loop::Descriptor descriptor, loop::SocketOptions options) override {
    const bool counts = options.role == loop::SocketRole::stream;
    if (!counts || ++streams_ != failures_.adopt_fails) {
      return other_->adopt(std::move(descriptor), options);
    }
    if (failures_.on_adopt_failure) failures_.on_adopt_failure();
    return fail(system_error(ENOMEM));
  }
  void close(loop::Socket& socket) override { other_->close(socket); }
  bool receive(loop::Socket& socket, loop::ReceiveOperation& operation) override {
    return other_->receive(socket, operation);
  }
  bool send(loop::Socket& socket, loop::SendOperation& operation) override {
    return other_->send(socket, operation);
  }
  bool accept(loop::Socket& socket, loop::AcceptOperation& operation) override {
    const bool fails = failures_.accept_error && failures_.accepts_that_fail > 0;
    if (!fails) return other_->accept(socket, operation);
    --failures_.accepts_that_fail;
    operation.pending_on(socket);
    operation.finish(failures_.accept_error);
    return true;
  }
  bool connect(loop::Socket& socket, loop::ConnectOperation& operation) override {
    return other_->connect(socket, operation);
  }
  void stop_accepting(loop::Socket& socket) override { other_->stop_accepting(socket); }
  void cancel(loop::Operation& operation) override { other_->cancel(operation); }
  Result<> shut_down_sending(loop::Socket& socket) override {
    return other_->shut_down_sending(socket);
  }
  void observe_hangup(loop::Socket& socket, loop::HangupObserver* observer) override {
    other_->observe_hangup(socket, observer);
  }
  void wait(Instant until) override { other_->wait(until); }
  void wake() noexcept override { other_->wake(); }

 private:
  std::unique_ptr<loop::Backend> other_;
  Failures& failures_;
  int streams_ = 0;
};

class FailingAcceptPlatform final : public MemoryPlatform {
 public:
  Result<loop::ChosenBackend> make_backend(BackendChoice choice, loop::RunQueue& ready) override {
    auto made = MemoryPlatform::make_backend(choice, ready);
    if (made) {
      made->backend = std::make_unique<FailingBackend>(std::move(made->backend), failures);
    }
    return made;
  }
  Failures failures;
};

struct FailedAccept {
  bool shared;  ///< true if other loops may have the socket too, which is then a Unix socket
  bool draining;
  int error;
};

/// Returns the error of an accept during which the backend fails.
std::error_code error_of_accept(const FailedAccept& failure) {
  FailingAcceptPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  std::error_code error;
  const auto talk = [&]() -> Task<> {
    const Endpoint address =
        failure.shared ? Endpoint::local("/socket").value() : Endpoint::loopback(0);
    tcp::Listener listener = co_await listen_locally({}, address);
    if (failure.draining) loop->drain();
    platform.failures.accept_error = system_error(failure.error);
    const auto accepted = co_await listener.accept();
    EXPECT_FALSE(accepted);
    if (!accepted) error = accepted.error();
  };
  run(*loop, talk());
  return error;
}

// The kernel fails the accepts of a Unix listener that refuses connections with EINVAL.
TEST(FailedAccept, IsTheEndOfAListenerThatRefusesConnections) {
  for (const int error : {EINVAL, EBADF}) {
    EXPECT_EQ(error_of_accept({.shared = false, .draining = true, .error = error}), Errc::closed);
    EXPECT_EQ(error_of_accept({.shared = true, .draining = true, .error = error}), Errc::closed);
  }
}

TEST(FailedAccept, IsTheEndIfAnotherLoopThatSharesTheSocketDrainsFirst) {
  EXPECT_EQ(error_of_accept({.shared = true, .draining = false, .error = EINVAL}), Errc::closed);
}

TEST(FailedAccept, IsTheErrorOfTheKernelOtherwise) {
  EXPECT_EQ(error_of_accept({.shared = false, .draining = false, .error = EINVAL}),
            system_error(EINVAL));
  for (const bool shared : {false, true}) {
    EXPECT_EQ(error_of_accept({.shared = shared, .draining = false, .error = EBADF}),
              system_error(EBADF));
  }
}

// The accepts of the extra sockets begin before that of the main one.
TEST(FailedAccept, OfAnExtraSocketEndsOnlyThatSocket) {
  FailingAcceptPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  Endpoint address = Endpoint::loopback(0);
  std::vector<std::shared_ptr<loop::SharedListener>> sockets;
  while (sockets.size() < 3) {
    loop::Descriptor socket = platform.listen(address, {}).value();
    address = platform.local_address(socket.value()).value();
    sockets.push_back(std::make_shared<loop::SharedListener>(platform, std::move(socket), address));
  }
  loop->group().listener_registry().inherit(sockets);
  platform.failures.accept_error = system_error(EBADF);
  platform.failures.accepts_that_fail = 2;
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    const auto none = co_await timeout(1s, as_task(listener.accept()));
    EXPECT_FALSE(none);
    if (!none) {
      EXPECT_EQ(none.error(), Errc::timed_out);
    }
    EXPECT_TRUE(sockets[0]->accepting());
    EXPECT_FALSE(sockets[1]->accepting() || sockets[2]->accepting());
    std::vector<tcp::Stream> clients;
    while (clients.size() < 3) clients.push_back((co_await tcp::connect(address)).value());
    loop->drain();
    EXPECT_TRUE(co_await listener.accept());
    const auto end = co_await listener.accept();
    EXPECT_FALSE(end) << "the other clients wait in the sockets that have failed";
    if (!end) {
      EXPECT_EQ(end.error(), Errc::closed);
    }
  };
  run(*loop, talk());
}

Task<std::vector<tcp::Stream>> connect_two(Endpoint server, Duration pause) {
  std::vector<tcp::Stream> clients;
  while (clients.size() < 2) {
    auto client = co_await tcp::connect(server);
    EXPECT_TRUE(client);
    if (!client) break;
    clients.push_back(std::move(*client));
    std::ignore = co_await sleep(pause);
  }
  co_return clients;
}

/// Expects that the first of two connections is lost and that the second one is accepted.
Task<> expect_second(tcp::Stream& accepted, std::vector<tcp::Stream>& clients) {
  EXPECT_EQ(clients.size(), 2U);
  if (clients.size() != 2) co_return;
  EXPECT_EQ(accepted.peer_address(), clients[1].local_address());
  const auto lost = co_await clients[0].read();
  EXPECT_FALSE(lost) << "its other end is closed";
}

TEST(FailedAccept, AConnectionWithoutMemoryIsDroppedAndCounted) {
  FailingAcceptPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  platform.failures.adopt_fails = 3;  // after both clients
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    auto clients = co_await connect_two(listener.local_address(), 0s);
    auto accepted = co_await listener.accept();
    EXPECT_TRUE(accepted);
    EXPECT_EQ(ConnectionCounters::of(*loop).dropped.value(), 1U);
    if (accepted) co_await expect_second(*accepted, clients);
  };
  run(*loop, talk());
}

TEST(FailedAccept, APendingAcceptWaitsForTheNextConnectionWithoutMemory) {
  FailingAcceptPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  platform.failures.adopt_fails = 2;  // after the first client
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    auto accepting = as_task(listener.accept());
    auto connecting = connect_two(listener.local_address(), 1s);
    auto both = co_await all(std::move(accepting), std::move(connecting));
    EXPECT_TRUE(both);
    EXPECT_EQ(ConnectionCounters::of(*loop).dropped.value(), 1U);
    if (both) co_await expect_second(std::get<0>(*both), std::get<1>(*both));
  };
  run(*loop, talk());
}

// The accept has a connection when the cancellation comes, and then waits for the next one.
TEST(FailedAccept, ACancellationWhileAConnectionIsDroppedEndsTheAccept) {
  FailingAcceptPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  CancelSource cancel;
  platform.failures.adopt_fails = 2;  // after the client
  platform.failures.on_adopt_failure = [&] { cancel.cancel(); };
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const Instant begun = platform.now();
    const auto accept = [&]() -> Task<> {
      auto limited = as_task(timeout(1h, as_task(listener.accept())));
      const Context cancelled{loop.get(), &cancel};
      const auto accepted = co_await in_context(cancelled, std::move(limited));
      EXPECT_FALSE(accepted);
      if (!accepted) {
        EXPECT_EQ(accepted.error(), Errc::cancelled);
      }
      EXPECT_EQ(platform.now(), begun) << "it does not wait for a connection";
    };
    const auto connect = [&]() -> Task<> {
      const auto client = co_await tcp::connect(listener.local_address());
      EXPECT_TRUE(client);
      if (client) std::ignore = co_await sleep(1s);
    };
    EXPECT_TRUE(co_await all(accept(), connect()));
    EXPECT_EQ(ConnectionCounters::of(*loop).dropped.value(), 1U);
  };
  run(*loop, talk());
}

}  // namespace
}  // namespace weir::failed_accept_test
