// A fixture with the events of one core, for unit tests. Included by tests only, so it may use
// weir/testing.
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

/// Waits in a task.
inline Task<> sleep_for(Duration length) {
  EXPECT_TRUE(co_await sleep(length));
}

/// A fixture with a bus of one core in virtual time, and a record of the calls in order.
class CoreEventsTest : public LoopTest {
 protected:
  explicit CoreEventsTest(const EventBusOptions& options = {}) { bus_.emplace(1, options); }
  void TearDown() override {
    bus_.reset();  // the bus keeps a chunk for each class in use
    LoopTest::TearDown();
  }

  CoreEvents& events() { return bus_->local(*loop_); }
  /// Runs the loop until nothing is left to do; no time passes.
  void run_until_idle() { platform_.run_until_idle(*loop_); }
  void record(std::string what) { recorded_.push_back(std::move(what)); }
  void record(const std::string& what, std::size_t number) {
    record(what + std::to_string(number));
  }
  std::vector<std::string> take_records() { return std::exchange(recorded_, {}); }
  /// Records every Ping as "ping 7".
  auto record_pings() {
    return [this](const Ping& ping) { record("ping ", ping.number); };
  }
  /// Publishes pings from `first` to `last`, both included.
  void publish_pings(std::size_t first, std::size_t last, const EventOptions& options = {}) {
    for (std::size_t number = first; number <= last; ++number) {
      ASSERT_TRUE(events().publish(Ping{number}, options));
    }
  }

  std::optional<EventBus> bus_;

 private:
  std::vector<std::string> recorded_;
};

using Records = std::vector<std::string>;

}  // namespace weir
