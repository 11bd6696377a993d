// A Process runs a program under test and reads its output, exit status and use of resources.
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

/// The time after which an action in a system test counts as hung. It is long because sanitizers
/// and a busy machine slow everything down. A passing test does not wait for it.
inline constexpr std::chrono::seconds default_timeout{30};

/// Returns the path of the built examples/`name`.cpp.
std::string example_path(std::string_view name);

/// Returns the path of an installed program, or an empty string.
std::string in_path(std::string_view name);

/// A Process is a child process. The destructor kills it with SIGKILL. The kernel kills it when
/// the thread that started it ends.
/// Threads: one at a time.
class Process {
 public:
  /// Starts the program at `path` with captured output and empty input. Throws if there is no
  /// such program, because no test can continue without it.
  explicit Process(const std::string& path, const std::vector<std::string>& arguments = {});
  /// Starts the program with the descriptors `given` as 3, 4, ..., as a service manager passes
  /// them. LISTEN_FDS and LISTEN_PID describe the descriptors.
  Process(const std::string& path, const std::vector<std::string>& arguments,
          const std::vector<int>& given);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Starts the built examples/`name`.cpp.
  static Process example(std::string_view name, const std::vector<std::string>& arguments = {});

  pid_t pid() const noexcept { return pid_; }

  /// Returns the text that the process has written so far.
  std::string output() const;
  std::string errors() const;

  /// Waits until the process has written `text` to either stream. Returns false if the process
  /// ended first or the time is up.
  bool wait_for(std::string_view text, std::chrono::milliseconds timeout = default_timeout) const;

  /// Waits for the line "listening on ADDRESS:PORT" and returns the port. Returns nullopt if the
  /// process ended first or the time is up.
  std::optional<std::uint16_t> wait_for_port(
      std::chrono::milliseconds timeout = default_timeout) const;

  /// Sends signal `number` to the process. Does nothing if the process has ended.
  void signal(int number) const;

  /// Waits for the end of the process and for the rest of its output.
  /// Returns: the exit code, or 128 + the signal that killed the process, as a shell reports it;
  /// nullopt if the time is up.
  std::optional<int> wait_for_exit(std::chrono::milliseconds timeout = default_timeout);

  /// Returns the current use of a resource, or 0 if the process has ended.
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

/// Calls `holds` repeatedly until it returns true. Returns false if the time is up. Tests use it
/// for changes in another process that the process does not announce.
template <class Holds>
bool eventually(Holds holds, std::chrono::milliseconds timeout = default_timeout);

/// Sleeps for a short time between two checks of another process.
void pause_between_polls();

template <class Holds>
bool eventually(Holds holds, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    pause_between_polls();
  }
  return true;
}

}  // namespace weir::tests
