// Which coroutine is named when it made a turn slow.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/loop_fixture.hpp"

namespace weir {
namespace {

class NamedCoroutine : public LoopTest {
 public:
  /// What computing for so long is in virtual time.
  void compute(Duration length) { host_.clock().move_to(host_.now() + length); }

 protected:
  std::vector<SlowPlace> places() { return loop_->group().slow_turns().places(); }
  /// The only one.
  std::string place() {
    const auto all = places();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::string() : all.front().name;
  }
};

Task<> culprit(NamedCoroutine& test, int times) {
  for (; times > 0; --times) {
    static_cast<void>(co_await sleep(1ms));
    test.compute(80ms);
  }
}

Task<> innocent(NamedCoroutine& test, int times) {
  for (; times > 0; --times) {
    static_cast<void>(co_await sleep(1ms));
    test.compute(2ms);
  }
}

TEST_F(NamedCoroutine, IsTheOneThatComputesForLong) {
  const auto all = [](Scope& scope, NamedCoroutine& test) -> Task<> {
    scope.spawn(innocent(test, 10));
    scope.spawn(culprit(test, 10));
    scope.spawn(innocent(test, 10));
    co_return;
  };
  static_cast<void>(run(with_scope(all, std::ref<NamedCoroutine>(*this))));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
  EXPECT_EQ(place().find("innocent"), std::string::npos) << place();
  EXPECT_EQ(places().front().turns, 10U);
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  EXPECT_EQ(host_.logged().size(), 1U) << "it is told once";
}

Task<> computes_behind_a_timeout(NamedCoroutine& test) {
  static_cast<void>(co_await timeout(1s, sleep(5ms)));
  test.compute(80ms);
}

TEST_F(NamedCoroutine, IsTheOneThatGoesOnAndNotWhatItAwaited) {
  run(computes_behind_a_timeout(*this));
  EXPECT_NE(place().find("::computes_behind_a_timeout"), std::string::npos) << place();
}

Task<> awaits_a_culprit(NamedCoroutine& test) {
  co_await culprit(test, 1);
}

TEST_F(NamedCoroutine, IsTheAwaitedOneThatComputesAndNotWhoGoesOn) {
  run(awaits_a_culprit(*this));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
}

}  // namespace
}  // namespace weir
