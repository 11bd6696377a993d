// Finds functions that a World cannot run: those that wait for another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"

namespace weir {

/// A World calls what is given to a blocking pool on its one thread. A function that waits there
/// for what another one does would wait for ever: when one sleeps for `asleep_max` of real time
/// without using any CPU, the program is aborted, with a line that says why and `replay`.
/// Threads: one at a time, beside its own.
class WorldWatch {
 public:
  WorldWatch(Duration asleep_max, std::string replay)
      : asleep_max_(asleep_max), replay_(std::move(replay)) {}
  WorldWatch(const WorldWatch&) = delete;
  WorldWatch& operator=(const WorldWatch&) = delete;
  ~WorldWatch();

  void call_begins();
  void call_ends();

 private:
  void look_again_and_again();
  [[noreturn]] void report() const;

  Duration asleep_max_;
  std::string replay_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable ending_;
  bool ends_ = false;
  std::uint64_t calls_ = 0;
  std::optional<os::ThreadProbe> calling_;
  std::thread thread_;  // from the first call on
};

}  // namespace weir
