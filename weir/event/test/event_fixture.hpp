// The events of one core, for unit tests. Included by tests only, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/event/bus.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {

/// An event of 8 bytes.
struct Ping {
  std::size_t number = 0;
};
struct Pong {
  std::size_t number = 0;
};

/// Lets time pass in a task.
inline Task<> pass(Duration length) {
  EXPECT_TRUE(co_await sleep(length));
}

/// A bus of one core in virtual time, and what was noted, in order.
class EventsTest : public LoopTest {
 protected:
  explicit EventsTest(const EventBusOptions& options = {}) { bus_.emplace(1, options); }
  void TearDown() override {
    bus_.reset();  // it keeps a chunk for each class in use
    LoopTest::TearDown();
  }

  Events& events() { return bus_->local(*loop_); }
  /// Until nothing is left to do; no time passes.
  void settle() { host_.run_until_idle(*loop_); }
  void note(std::string what) { noted_.push_back(std::move(what)); }
  void note(const std::string& what, std::size_t number) { note(what + std::to_string(number)); }
  std::vector<std::string> take_notes() { return std::exchange(noted_, {}); }
  /// Notes every Ping as "ping 7".
  auto noting_pings() {
    return [this](const Ping& ping) { note("ping ", ping.number); };
  }
  /// Publishes pings from `first` to `last`, both included.
  void publish_pings(std::size_t first, std::size_t last, const EventOptions& options = {}) {
    for (std::size_t number = first; number <= last; ++number) {
      ASSERT_TRUE(events().publish(Ping{number}, options));
    }
  }

  std::optional<EventBus> bus_;

 private:
  std::vector<std::string> noted_;
};

using Notes = std::vector<std::string>;

}  // namespace weir
