// Exercises events of all classes and sizes between cores, until their bus is stopped.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "weir/event/bus.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// The test requires these rules:
/// - a published event is handled once, before stop() returns;
/// - a class keeps the order in which its core published its events;
/// - a rejected event is not handled, and a stopped bus rejects all events;
/// - a handler gets each event of its registration, and none after its end;
/// - a full queue rejects events, and no other queue does.
/// Threads: those of one World.
/// Lifetime: outlives the run of its cores.
class EventScenario {
 public:
  explicit EventScenario(unsigned cores)
      : bus_(cores, {.capacity = queue_capacity}), small_(cores) {}

  /// Runs on each core.
  Task<> run(Scope& scope);
  std::string find_violation() const;
  /// Returns the number of handled events.
  std::size_t done() const noexcept { return handled_count_; }

 private:
  struct SmallEvent {
    unsigned publisher;
    unsigned number;
    EventPriority priority;
  };
  struct LargeEvent : SmallEvent {
    std::array<char, 300> more = {};
  };
  /// The path of an event: publishing core, handling core and class.
  using Route = std::tuple<unsigned, unsigned, EventPriority>;
  using Numbers = std::map<Route, std::vector<unsigned>>;
  static constexpr std::size_t queue_capacity = 16;

  template <class T>
  Result<> publish(CoreEvents& events, loop::PlatformClock& clock);
  Task<> publish_some(CoreEvents& events, loop::PlatformClock& clock);
  Task<> subscribe_briefly(CoreEvents& events, loop::PlatformClock& clock);
  Task<> stop(loop::PlatformClock& clock);
  Task<> take_event(loop::PlatformClock& clock);
  void on_event(CoreEvents& events, loop::PlatformClock& clock, const SmallEvent& event);
  void compare(std::string_view when);
  /// Returns the number of events that wait on core `to`: its own, or those of all other cores.
  std::size_t waiting_on(unsigned to, bool own) const;

  EventBus bus_;
  Numbers published_;
  Numbers handled_;
  unsigned last_ = 0;
  std::size_t handled_count_ = 0;
  std::vector<std::size_t> small_;  // small events that each core has handled
  std::size_t started_ = 0;         // runs of the waiting handlers
  bool stopped_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
