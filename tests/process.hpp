// A program under test, run as a process of its own: its output, its end, its use of the system.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/os/detail/io/fd.hpp"

namespace weir::tests {

/// What anything in a system test may take before it counts as hung; generous, because sanitizers
/// and a busy machine make everything slow, and nothing waits for it when all goes well.
inline constexpr std::chrono::seconds patience{30};

/// Where examples/`name`.cpp is, built.
std::string example_path(std::string_view name);

/// A child process. Killed with SIGKILL when destroyed, or when the thread that started it ends.
/// Threads: one at a time.
class Process {
 public:
  /// Starts the program at `path`, with its output captured and nothing to read. Throws when there
  /// is no such program, which no test can go on without.
  explicit Process(const std::string& path, const std::vector<std::string>& arguments = {});
  /// The same with these descriptors as 3, 4, ..., as a service manager gives them: LISTEN_FDS and
  /// LISTEN_PID tell of them.
  Process(const std::string& path, const std::vector<std::string>& arguments,
          const std::vector<int>& given);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Starts examples/`name`.cpp as built.
  static Process example(std::string_view name, const std::vector<std::string>& arguments = {});

  pid_t pid() const noexcept { return pid_; }

  /// What it has written so far.
  std::string output() const;
  std::string errors() const;

  /// Waits until it has written `text`, to either stream. False when it has ended without, or time
  /// is up.
  bool wait_for(std::string_view text, std::chrono::milliseconds longest = patience) const;

  /// Waits for its line "listening on ADDRESS:PORT" and gives the port; nullopt when it has ended
  /// without, or time is up.
  std::optional<std::uint16_t> wait_for_port(std::chrono::milliseconds longest = patience) const;

  /// Sends it a signal; nothing when it has ended.
  void signal(int number) const;

  /// Waits for its end and for the rest of its output. The status as a shell tells it: the exit
  /// code, or 128 + the signal that killed it; nullopt when time is up and it still runs.
  std::optional<int> wait_for_exit(std::chrono::milliseconds longest = patience);

  /// What it uses now; 0 when it has ended.
  std::size_t descriptors() const;
  std::size_t sockets() const;
  std::size_t threads() const;
  std::size_t resident_bytes() const;

 private:
  class Capture;

  pid_t pid_ = -1;
  os::Fd pidfd_;
  std::optional<int> status_;
  std::unique_ptr<Capture> capture_;
};

/// Asks `holds` again and again until it says true; false when time is up. For what another process
/// does in its own time and tells nobody.
template <class Holds>
bool eventually(Holds holds, std::chrono::milliseconds longest = patience);

/// A short pause between two looks at another process.
void pause_between_looks();

template <class Holds>
bool eventually(Holds holds, std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    pause_between_looks();
  }
  return true;
}

}  // namespace weir::tests
