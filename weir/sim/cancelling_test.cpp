// Tests of cancelling each kind of wait at every turn of a World. The waiting task ends, no host
// has a leak, and work between cores is done once or not at all.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "weir/net/dns/connect.hpp"
#include "weir/net/files.hpp"
#include "weir/net/udp.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::sim::cancelling_test {
namespace {

/// A World with a task that is cancelled at one turn, and an echo service.
class CancellingWorld : loop::Runnable {
 public:
  using Victim = Task<> (*)(CancellingWorld&);

  CancellingWorld(Victim victim, std::size_t at, const WorldOptions& options, MemoryFiles files)
      : loop::Runnable(&cancel_victim),
        world(options),
        host(world.host("host", {.cores = 2, .files = files})),
        victim_(victim),
        at_(at) {
    server.start_service(
        [](loop::Platform& its) { return Runtime(its, quiet()).run_on_each_core(serve_echo); });
    host.start([this](loop::Platform& its) {
      return Runtime(its, quiet(2)).run_on_each_core(run_core, std::ref(*this));
    });
    world.always("cancel", [this] {
      if (loop_ != nullptr && turn_++ == at_) {
        was_cancelled = true;
        loop_->post(*this);
      }
      return std::string();
    });
  }
  WorldReport run() { return world.run_until_done(1h); }

  static Task<> run_core(Scope& scope, CancellingWorld& its) {
    if (scope.loop().core() == 1) {
      std::ignore = co_await sleep(10s);  // this core only serves calls
      co_return;
    }
    const auto slept = co_await sleep(1s);
    EXPECT_TRUE(slept);
    its.loop_ = &scope.loop();
    const auto cancel_on_event = [&its](Scope& inner) -> Task<> {
      inner.spawn(its.run_victim());
      std::ignore = co_await its.cancelling_.wait();
      inner.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, cancel_on_event);
    its.loop_ = nullptr;
    EXPECT_TRUE(its.ended_);
  }

  World world;
  Host& host;
  Host& server = world.host("server");
  Mailbox<int> mailbox{MailboxOptions{.capacity = 1}};
  Broadcast<int> broadcast{BroadcastOptions{}};
  int sent = 0;
  int received = 0;
  bool was_cancelled = false;

 private:
  Task<> run_victim() {
    co_await victim_(*this);
    ended_ = true;
    cancelling_.set();
  }
  static void cancel_victim(loop::Runnable& self) {
    static_cast<CancellingWorld&>(self).cancelling_.set();
  }

  Victim victim_;
  std::size_t at_;
  std::size_t turn_ = 0;
  Loop* loop_ = nullptr;
  ManualResetEvent cancelling_;
  bool ended_ = false;
};

bool is_expected(std::error_code error) {
  return !error || error == Errc::cancelled;
}

Task<> exchanges_text(CancellingWorld& its) {
  auto stream = co_await tcp::connect(its.server.address(7));
  if (!stream) {
    EXPECT_EQ(stream.error(), Errc::cancelled);
    co_return;
  }
  EchoRequest request{.text = std::string(30'000, 'x')};
  std::ignore = co_await all(write_text(*stream, request), read_text(*stream, request));
  EXPECT_TRUE(is_expected(request.writing)) << request.writing.message();
  EXPECT_TRUE(is_expected(request.reading)) << request.reading.message();
}

Task<Result<>> connect_to_self() {
  WEIR_CO_TRY(auto stream, co_await tcp::connect(Endpoint::loopback(9)));
  co_return {};
}
Task<Result<>> accept_one(tcp::Listener& listener) {
  WEIR_CO_TRY(auto stream, co_await listener.accept());
  co_return {};
}
Task<> accepts(CancellingWorld&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(9));
  if (!listener) co_return;
  const auto both = co_await all(accept_one(*listener), connect_to_self());
  EXPECT_TRUE(both || both.error() == Errc::cancelled) << both.error().message();
}

Task<> sends_datagrams(CancellingWorld&) {
  auto one = co_await udp::bind(Endpoint::loopback(0));
  if (!one) co_return;
  auto other = co_await udp::connect(one->local_address());
  if (!other) co_return;
  std::ignore = co_await other->send("hello");
  const auto received = co_await one->receive();
  EXPECT_TRUE(received || received.error() == Errc::cancelled);
  if (received) std::ignore = co_await timeout(10ms, as_task(one->receive()));
}

Task<> looks_names_up(CancellingWorld& its) {
  dns::ResolverOptions options;
  options.hosts_file = "/hosts";
  options.resolv_conf = "/resolv.conf";
  options.servers = {its.server.address(53)};  // no server listens there
  dns::Resolver resolver(options);
  tcp::ConnectOptions by_this;
  by_this.resolver = &resolver;
  std::ignore = co_await tcp::connect("service.example", 7, by_this);
}

Task<> writes_files(CancellingWorld&) {
  const std::string text(100'000, 'x');
  const auto written = co_await files::write_file("/file", text);
  EXPECT_TRUE(written || written.error() == Errc::cancelled) << written.error().message();
  if (!written) co_return;
  const auto read = co_await files::read_file("/file");
  EXPECT_TRUE(read ? *read == text : read.error() == Errc::cancelled);
}

int seven() {
  return 7;
}
Task<> calls_the_pool(CancellingWorld& its) {
  Loop& loop = *(co_await this_context()).loop;
  for (int call = 0; call < 3; ++call) {
    const auto result = co_await shared_pool(loop).pool().run(seven);
    EXPECT_TRUE(result ? *result == 7 : result.error() == Errc::cancelled);
  }
  static_cast<void>(its);
}

Task<Result<int>> seven_later() {
  WEIR_CO_TRY(co_await sleep(5ms));
  co_return 7;
}
Task<> calls_another_core(CancellingWorld&) {
  for (int call = 0; call < 3; ++call) {
    const auto result = co_await on_core(1, seven_later);
    EXPECT_TRUE(result ? *result == 7 : result.error() == Errc::cancelled);
  }
}

Task<Result<>> send_messages(CancellingWorld& its) {
  for (int message = 0; message < 4; ++message) {
    if (auto sent = co_await its.mailbox.send(message); !sent) co_return sent;
    ++its.sent;
  }
  co_return {};
}
Task<Result<>> receive_messages(CancellingWorld& its) {
  while (its.received < 4) {
    WEIR_CO_TRY(const auto message, co_await its.mailbox.receive());
    EXPECT_EQ(message, its.received++);
  }
  co_return {};
}
Task<Result<>> receive_on_other_core(CancellingWorld& its) {
  co_return co_await on_core(1, receive_messages, std::ref(its));
}
Task<> sends_messages(CancellingWorld& its) {
  std::ignore = co_await all(send_messages(its), receive_on_other_core(its));
  int left = 0;
  while (its.mailbox.try_receive()) ++left;
  EXPECT_EQ(its.received + left, its.sent);
}

Task<Result<>> receive_values(Broadcast<int>::Subscription& subscription) {
  for (int received = 0; received < 3; ++received) {
    WEIR_CO_TRY(const auto value, co_await subscription.receive());
    EXPECT_EQ(*value, received);
  }
  co_return {};
}
Task<Result<>> publish(CancellingWorld& its) {
  for (int value = 0; value < 3; ++value) {
    if (auto slept = co_await sleep(1ms); !slept) co_return slept;
    if (auto published = its.broadcast.publish(value); !published) co_return published;
  }
  co_return {};
}
Task<> receives_broadcasts(CancellingWorld& its) {
  auto subscription = its.broadcast.subscribe();
  const auto both = co_await all(receive_values(subscription), publish(its));
  EXPECT_TRUE(both || both.error() == Errc::cancelled);
}

struct Kind {
  const char* name;
  CancellingWorld::Victim victim;
  std::size_t turns_min;
  MemoryFiles files = MemoryFiles::by_backend;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class WorldCancelling : public testing::TestWithParam<Kind> {};

TEST_P(WorldCancelling, LeavesNothingBehindAtAnyTurn) {
  for (int run = 0; run < 2; ++run) {
    const WorldOptions options = fresh_world_options();
    bool was_cancelled = true;
    std::size_t at = 0;
    for (; was_cancelled && at < 2000; ++at) {
      CancellingWorld its(GetParam().victim, at, options, GetParam().files);
      const WorldReport report = its.run();
      ASSERT_TRUE(report.ok()) << "cancelled at turn " << at << ": " << report.text();
      ASSERT_FALSE(HasFailure()) << "cancelled at turn " << at << ": " << report.text();
      was_cancelled = its.was_cancelled;
    }
    EXPECT_FALSE(was_cancelled) << "the run never ends: " << options.replay << options.seed;
    EXPECT_GT(at, GetParam().turns_min) << options.replay << options.seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WorldCancelling,
    testing::Values(Kind{"Stream", exchanges_text, 7}, Kind{"Accept", accepts, 2},
                    Kind{"Datagrams", sends_datagrams, 3}, Kind{"Names", looks_names_up, 3},
                    Kind{"Files", writes_files, 3},
                    Kind{"FilesByThreads", writes_files, 4, MemoryFiles::by_threads},
                    Kind{"Pool", calls_the_pool, 3}, Kind{"OtherCore", calls_another_core, 6},
                    Kind{"Mailbox", sends_messages, 4}, Kind{"Broadcast", receives_broadcasts, 3}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace weir::sim::cancelling_test
