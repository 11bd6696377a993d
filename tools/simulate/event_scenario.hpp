// What cores tell each other by events, of all classes and sizes, until their bus is stopped.
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

/// What must hold: what was published is handled, once, and within its class in the order in which
/// its core published it, all of it before stop() returns; what was refused is not; nobody is told
/// of anything once his registration has ended.
/// Threads: those of one World. Lifetime: outlives the run of its cores.
class EventPlay {
 public:
  explicit EventPlay(unsigned cores) : bus_(cores, {.queued_max = 16}) {}

  /// The body of each core.
  Task<> run(Scope& scope);
  std::string find_fault() const;
  /// Events that were handled.
  std::size_t done() const noexcept { return done_; }

 private:
  struct Note {
    unsigned publisher;
    unsigned number;
    EventPriority priority;
  };
  struct LargeNote : Note {
    std::array<char, 300> more = {};
  };
  /// From one core to another in one class.
  using Way = std::tuple<unsigned, unsigned, EventPriority>;
  using Numbers = std::map<Way, std::vector<unsigned>>;

  template <class T>
  Result<> publish(Events& events, Host& host);
  Task<> publish_some(Events& events, Host& host);
  Task<> come_and_go(Events& events, Host& host);
  Task<> stop(Host& host);
  Task<> take_note(Host& host);
  void hear(Events& events, Host& host, const Note& note);
  void compare(std::string_view when);

  EventBus bus_;
  Numbers published_;
  Numbers heard_;
  unsigned last_ = 0;
  std::size_t done_ = 0;
  std::size_t small_ = 0;  // of those, the ones that handlers that wait are told of, too,
  std::size_t begun_ = 0;  // and their runs
  bool stopped_ = false;
  std::string fault_;
};

}  // namespace weir::simulate
