// Everything that a task may wait for, cancelled at every turn of a World in turn: what waited
// ends, nothing is left on any host, and what was done between cores is done once or not at all.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/files.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir {
namespace {

/// A host on which a victim is cancelled at one turn of the World, beside an echo service.
class CancellingWorld : Runnable {
 public:
  using Victim = Task<> (*)(CancellingWorld&);

  CancellingWorld(Victim victim, std::size_t at, const WorldOptions& options, MemoryFiles files)
      : Runnable(&strikes),
        world(options),
        host(world.host("host", {.cores = 2, .files = files})),
        victim_(victim),
        at_(at) {
    server.start_service(
        [](Host& its) { return Runtime(its, quiet()).run_on_each_core(serve_echo); });
    host.start([this](Host& its) {
      return Runtime(its, quiet(2)).run_on_each_core(life, std::ref(*this));
    });
    world.always("strike", [this] {
      if (loop_ != nullptr && turn_++ == at_) {
        struck = true;
        loop_->post(*this);
      }
      return std::string();
    });
  }
  WorldReport run() { return world.run_until_done(1h); }

  static Task<> life(Scope& scope, CancellingWorld& its) {
    if (scope.loop().core() == 1) {
      static_cast<void>(co_await sleep(10s));  // it is there for calls
      co_return;
    }
    const auto slept = co_await sleep(1s);
    EXPECT_TRUE(slept);
    its.loop_ = &scope.loop();
    const auto hunt = [&its](Scope& inner) -> Task<> {
      inner.spawn(its.suffer());
      static_cast<void>(co_await its.blow_.wait());
      inner.cancel();
    };
    static_cast<void>(co_await with_scope(OnFailure::supervise, hunt));
    its.loop_ = nullptr;
    EXPECT_TRUE(its.ended_);
  }

  World world;
  WorldHost& host;
  WorldHost& server = world.host("server");
  Mailbox<int> letters{MailboxOptions{.capacity = 1}};
  Broadcast<int> news{BroadcastOptions{}};
  int sent = 0;
  int received = 0;
  bool struck = false;

 private:
  Task<> suffer() {
    co_await victim_(*this);
    ended_ = true;
    blow_.set();
  }
  static void strikes(Runnable& self) { static_cast<CancellingWorld&>(self).blow_.set(); }

  Victim victim_;
  std::size_t at_;
  std::size_t turn_ = 0;
  Loop* loop_ = nullptr;
  CoreManualResetEvent blow_;
  bool ended_ = false;
};

bool ends_well(std::error_code error) {
  return !error || error == Errc::cancelled;
}

Task<> converses(CancellingWorld& its) {
  auto stream = co_await tcp::connect(its.server.address(7));
  if (!stream) {
    EXPECT_EQ(stream.error(), Errc::cancelled);
    co_return;
  }
  Asked asked{.text = std::string(30'000, 'x')};
  static_cast<void>(co_await all(write_text(*stream, asked), read_text(*stream, asked)));
  EXPECT_TRUE(ends_well(asked.writing)) << asked.writing.message();
  EXPECT_TRUE(ends_well(asked.reading)) << asked.reading.message();
}

Task<Result<>> connect_to_oneself() {
  auto stream = co_await tcp::connect(Endpoint::loopback(9));
  if (!stream) co_return fail(stream.error());
  co_return {};
}
Task<Result<>> accept_one(tcp::Listener& listener) {
  auto stream = co_await listener.accept();
  if (!stream) co_return fail(stream.error());
  co_return {};
}
Task<> accepts(CancellingWorld&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(9));
  if (!listener) co_return;
  const auto both = co_await all(accept_one(*listener), connect_to_oneself());
  EXPECT_TRUE(both || both.error() == Errc::cancelled) << both.error().message();
}

Task<> sends_datagrams(CancellingWorld&) {
  auto one = co_await udp::bind(Endpoint::loopback(0));
  if (!one) co_return;
  auto other = co_await udp::connect(one->local_address());
  if (!other) co_return;
  static_cast<void>(co_await other->send("hello"));
  const auto heard = co_await one->receive();
  EXPECT_TRUE(heard || heard.error() == Errc::cancelled);
  if (heard) static_cast<void>(co_await timeout(10ms, as_task(one->receive())));
}

Task<> looks_names_up(CancellingWorld& its) {
  names::ResolverOptions options;
  options.hosts_file = "/hosts";
  options.resolv_conf = "/resolv.conf";
  options.servers = {its.server.address(53)};  // nobody is there
  names::Resolver resolver(options);
  tcp::ConnectOptions by_this;
  by_this.resolver = &resolver;
  static_cast<void>(co_await tcp::connect("service.example", 7, by_this));
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
  if (auto slept = co_await sleep(5ms); !slept) co_return fail(slept.error());
  co_return 7;
}
Task<> calls_another_core(CancellingWorld&) {
  for (int call = 0; call < 3; ++call) {
    const auto result = co_await on_core(1, seven_later);
    EXPECT_TRUE(result ? *result == 7 : result.error() == Errc::cancelled);
  }
}

Task<Result<>> send_letters(CancellingWorld& its) {
  for (int letter = 0; letter < 4; ++letter) {
    if (auto sent = co_await its.letters.send(letter); !sent) co_return sent;
    ++its.sent;
  }
  co_return {};
}
Task<Result<>> receive_letters(CancellingWorld& its) {
  while (its.received < 4) {
    const auto letter = co_await its.letters.receive();
    if (!letter) co_return fail(letter.error());
    EXPECT_EQ(*letter, its.received++);
  }
  co_return {};
}
Task<Result<>> receive_there(CancellingWorld& its) {
  co_return co_await on_core(1, receive_letters, std::ref(its));
}
Task<> writes_letters(CancellingWorld& its) {
  static_cast<void>(co_await all(send_letters(its), receive_there(its)));
  int left = 0;
  while (its.letters.try_receive()) ++left;
  EXPECT_EQ(its.received + left, its.sent);
}

Task<Result<>> hear(Broadcast<int>::Subscription& subscription) {
  for (int heard = 0; heard < 3; ++heard) {
    const auto value = co_await subscription.receive();
    if (!value) co_return fail(value.error());
    EXPECT_EQ(**value, heard);
  }
  co_return {};
}
Task<Result<>> publish(CancellingWorld& its) {
  for (int value = 0; value < 3; ++value) {
    if (auto slept = co_await sleep(1ms); !slept) co_return slept;
    if (auto told = its.news.publish(value); !told) co_return told;
  }
  co_return {};
}
Task<> hears_news(CancellingWorld& its) {
  auto subscription = its.news.subscribe();
  const auto both = co_await all(hear(subscription), publish(its));
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

TEST_P(WorldCancelling, AtEveryTurn) {
  for (int run = 0; run < 2; ++run) {
    const WorldOptions options = fresh_world();
    bool struck = true;
    std::size_t at = 0;
    for (; struck && at < 2000; ++at) {
      CancellingWorld its(GetParam().victim, at, options, GetParam().files);
      const WorldReport report = its.run();
      ASSERT_TRUE(report.ok()) << "cancelled at turn " << at << ": " << report.text();
      ASSERT_FALSE(HasFailure()) << "cancelled at turn " << at << ": " << report.text();
      struck = its.struck;
    }
    EXPECT_FALSE(struck) << "it never ends: " << options.replay << options.seed;
    EXPECT_GT(at, GetParam().turns_min) << options.replay << options.seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WorldCancelling,
    testing::Values(Kind{"Stream", converses, 7}, Kind{"Accept", accepts, 2},
                    Kind{"Datagrams", sends_datagrams, 3}, Kind{"Names", looks_names_up, 3},
                    Kind{"Files", writes_files, 3},
                    Kind{"FilesByThreads", writes_files, 4, MemoryFiles::by_threads},
                    Kind{"Pool", calls_the_pool, 3}, Kind{"OtherCore", calls_another_core, 6},
                    Kind{"Letters", writes_letters, 4}, Kind{"News", hears_news, 3}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace weir
