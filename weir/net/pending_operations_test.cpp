// Tests of asserted contracts: a socket or a file has at most one pending operation of a kind, and
// none when it is moved or destroyed.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/net/files.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/test/loop_fixture.hpp"

#ifndef NDEBUG
namespace weir::pending_operations_test {
namespace {

MemoryPlatformOptions slow_files() {
  MemoryPlatformOptions options;
  options.file_time = 10ms;
  return options;
}

class PendingOperationsDeathTest : public LoopTest {
 protected:
  PendingOperationsDeathTest() : LoopTest(slow_files()) {}
};

template <class Awaitable>
Task<> wait_for(Awaitable awaitable) {
  std::ignore = co_await std::move(awaitable);
}

TEST_F(PendingOperationsDeathTest, StreamHasOneReadAndOneWrite) {
  const auto read_twice = [this] {
    const auto body = [](Scope& scope) -> Task<> {
      Pair pair = co_await connect_pair();
      scope.spawn(wait_for(pair.server.read()));
      std::array<std::byte, 1> room{};
      std::ignore = co_await pair.server.read_into(room);
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(read_twice(), "pending\\(\\) == nullptr");
  const auto write_twice = [this] {
    const std::string text(1 << 20, 'x');
    const auto body = [&](Scope& scope) -> Task<> {
      Pair pair = co_await connect_pair();
      scope.spawn(wait_for(pair.client.write(text)));
      std::ignore = co_await pair.client.write("x");
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(write_twice(), "pending\\(\\) == nullptr");
}

TEST_F(PendingOperationsDeathTest, StreamIsNotDestroyedOrMovedDuringAnOperation) {
  const auto end_during = [this](bool moves, bool writes) {
    const std::string text(1 << 20, 'x');
    const auto body = [&](Scope& scope) -> Task<> {
      Pair pair = co_await connect_pair();
      std::optional<tcp::Stream> stream(std::move(pair.client));
      if (writes) {
        scope.spawn(wait_for(stream->write(text)));
      } else {
        scope.spawn(wait_for(stream->read()));
      }
      if (moves) {
        const tcp::Stream other = std::move(*stream);
      } else {
        stream.reset();
      }
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  for (const bool writes : {false, true}) {
    EXPECT_DEATH(end_during(false, writes), "Assertion");  // of the backend
    EXPECT_DEATH(end_during(true, writes), "other.reading_ == nullptr && other.writing_ == ");
  }
}

TEST_F(PendingOperationsDeathTest, ListenerAndUdpSocketAreNotDestroyedDuringAnOperation) {
  const auto end_accept = [this] {
    const auto body = [](Scope& scope) -> Task<> {
      tcp::Listener made = co_await listen_locally();
      std::optional<tcp::Listener> listener(std::move(made));
      scope.spawn(wait_for(listener->accept()));
      listener.reset();
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(end_accept(), "accepting_ == nullptr");
  const auto end_receive = [this] {
    const auto body = [](Scope& scope) -> Task<> {
      auto bound = co_await udp::bind(Endpoint::loopback(0));
      std::optional<udp::Socket> socket(std::move(bound.value()));
      scope.spawn(wait_for(socket->receive()));
      socket.reset();
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(end_receive(), "receiving_ == nullptr && sending_ == nullptr");
}

TEST_F(PendingOperationsDeathTest, UdpSocketHasOneReceive) {
  const auto receive_twice = [this] {
    const auto body = [](Scope& scope) -> Task<> {
      auto bound = co_await udp::bind(Endpoint::loopback(0));
      udp::Socket socket = std::move(bound.value());
      scope.spawn(wait_for(socket.receive()));
      std::ignore = co_await socket.receive();
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(receive_twice(), "receiving_ == nullptr");
}

TEST_F(PendingOperationsDeathTest, ListenerHasOneAccept) {
  const auto accept_twice = [this] {
    const auto body = [](Scope& scope) -> Task<> {
      tcp::Listener listener = co_await listen_locally();
      scope.spawn(wait_for(listener.accept()));
      std::ignore = co_await listener.accept();
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  EXPECT_DEATH(accept_twice(), "accepting_ == nullptr");
}

TEST_F(PendingOperationsDeathTest, FileHasOneOperationThatMovesThePosition) {
  const auto act_during = [this](bool reads_first, bool reads_then) {
    const auto body = [=](Scope& scope) -> Task<> {
      auto opened = co_await files::open("/tmp/f", files::Mode::truncate);
      if (!opened) co_return;
      files::File file = std::move(*opened);
      if (reads_first) {
        scope.spawn(wait_for(file.read()));
      } else {
        scope.spawn(wait_for(file.write("x")));
      }
      if (reads_then) {
        std::ignore = co_await file.read();
      } else {
        std::ignore = co_await file.write("x");
      }
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  for (const bool first : {false, true}) {
    EXPECT_DEATH(act_during(first, false), "one read\\(\\) or write\\(\\) at a time");
    EXPECT_DEATH(act_during(first, true), "one read\\(\\) or write\\(\\) at a time");
  }
}

TEST_F(PendingOperationsDeathTest, FileIsNotDestroyedOrMovedDuringAnOperation) {
  const auto end_during = [this](bool moves, bool at_an_offset) {
    const auto body = [=](Scope& scope) -> Task<> {
      auto opened = co_await files::open("/tmp/f", files::Mode::truncate);
      if (!opened) co_return;
      std::optional<files::File> file(std::move(*opened));
      if (at_an_offset) {
        scope.spawn(wait_for(file->write_at(0, to_bytes("x"))));
      } else {
        scope.spawn(wait_for(file->sync()));
      }
      if (moves) {
        const files::File other = std::move(*file);
      } else {
        file.reset();
      }
    };
    static_cast<void>(run_made([&] { return with_scope(body); }));
  };
  for (const bool at_an_offset : {false, true}) {
    EXPECT_DEATH(end_during(false, at_an_offset), "in_use_ == 0");
    EXPECT_DEATH(end_during(true, at_an_offset), "in_use_ == 0");
  }
}

}  // namespace
}  // namespace weir::pending_operations_test
#endif
