#include "weir/net/dns/detail/shared_lookup.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::dns::shared_lookup_test {
namespace {

using ResultPtr = SharedLookup::ResultPtr;

class CountingOwner final : public SharedLookup::Owner {
 public:
  void on_finished(SharedLookup& /*lookup*/) noexcept override { ++finished; }
  int finished = 0;
};

class SharedLookupTest : public LoopTest {
 protected:
  std::shared_ptr<SharedLookup> make(Task<ResultPtr> task) {
    return std::make_shared<SharedLookup>(owner_, Question{{"a.example", false}, Family::ipv4},
                                          std::move(task));
  }
  static Task<ResultPtr> fail_later() {
    co_await yield();
    throw std::runtime_error("no memory");
  }
  /// Waits for a minute. A cancelled look-up takes one turn more and returns the cancellation.
  static Task<ResultPtr> take_a_minute(bool& was_cancelled) {
    const auto slept = co_await sleep(1min);
    was_cancelled = !slept;
    co_await yield();
    auto result = std::make_shared<LookupResult>();
    if (!slept) result->error = slept.error();
    co_return result;
  }
  /// Waits with a source of its own, and returns the error of the result.
  static Task<std::error_code> wait(std::shared_ptr<SharedLookup> lookup, CancelSource& cancel) {
    const Context own = co_await this_context();
    auto waiting = in_context(Context{own.loop, &cancel}, SharedLookup::wait(std::move(lookup)));
    const ResultPtr result = co_await std::move(waiting);
    co_return result->error;
  }
  static Task<> cancel_after(Duration pause, CancelSource& source) {
    std::ignore = co_await sleep(pause);
    source.cancel();
  }

  CountingOwner owner_;
};

TEST_F(SharedLookupTest, EachWaiterGetsTheExceptionOfTheLookUp) {
  const auto talk = [this]() -> Task<> {
    const Context own = co_await this_context();
    const auto lookup = make(fail_later());
    const auto expect_throw = [](std::shared_ptr<SharedLookup> from) -> Task<> {
      bool thrown = false;
      try {
        auto waiting = SharedLookup::wait(std::move(from));
        std::ignore = co_await std::move(waiting);
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      EXPECT_TRUE(thrown);
    };
    lookup->start(*own.loop);
    EXPECT_TRUE(co_await all(expect_throw(lookup), expect_throw(lookup)));
    EXPECT_EQ(owner_.finished, 1);
  };
  run_made(talk);
}

TEST_F(SharedLookupTest, OneCancelledWaiterLeavesTheOthers) {
  const auto talk = [this]() -> Task<> {
    const Context own = co_await this_context();
    CancelSource first;
    CancelSource second;
    bool was_cancelled = false;
    const auto lookup = make(take_a_minute(was_cancelled));
    lookup->start(*own.loop);
    auto both = all(wait(lookup, first), wait(lookup, second), cancel_after(1s, first));
    const auto errors = co_await std::move(both);
    EXPECT_EQ(std::get<0>(errors.value()), Errc::cancelled);
    EXPECT_EQ(std::get<1>(errors.value()), std::error_code());
    EXPECT_FALSE(was_cancelled);
    EXPECT_EQ(owner_.finished, 1);
  };
  run_made(talk);
  EXPECT_EQ(elapsed(), 1min);
}

TEST_F(SharedLookupTest, LastCancelledWaiterCancelsTheLookUpAndAwaitsItsEnd) {
  const auto talk = [this]() -> Task<> {
    const Context own = co_await this_context();
    CancelSource first;
    CancelSource second;
    bool was_cancelled = false;
    const auto lookup = make(take_a_minute(was_cancelled));
    lookup->start(*own.loop);
    const auto last = [&]() -> Task<std::error_code> {
      auto waiting = wait(lookup, second);
      const std::error_code error = co_await std::move(waiting);
      EXPECT_TRUE(was_cancelled);
      EXPECT_EQ(owner_.finished, 1);
      co_return error;
    };
    const auto errors = co_await all(wait(lookup, first), last(), cancel_after(1s, first),
                                     cancel_after(2s, second));
    EXPECT_EQ(std::get<0>(errors.value()), Errc::cancelled);
    EXPECT_EQ(std::get<1>(errors.value()), Errc::cancelled);
    EXPECT_EQ(owner_.finished, 1);
  };
  run_made(talk);
  EXPECT_EQ(elapsed(), 2s);
}

}  // namespace
}  // namespace weir::dns::shared_lookup_test
