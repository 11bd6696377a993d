// Single values of the files that the kernel shows in /proc and /sys. `root` is their prefix.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::os {

/// Returns the numbers of a file that are separated by blanks, up to the first other word. A
/// missing file has none.
std::vector<std::int64_t> read_numbers(const std::string& path);
/// Returns the first number of a file; nullopt if it does not begin with one.
std::optional<std::int64_t> read_number(const std::string& path);

/// Returns the first word of a field of `root`/proc/thread-self/status, such as "Seccomp".
std::optional<std::string> read_status_field(std::string_view name, const std::string& root);

/// Returns true if the calling thread has a capability of linux/capability.h; false if /proc cannot
/// be read.
bool has_capability(int number, const std::string& root);

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct SoftAndHard {
  std::uint64_t soft;
  std::uint64_t hard;  ///< `unlimited` if there is no limit
};

/// Returns a limit of `root`/proc/self/limits, such as "Max open files".
std::optional<SoftAndHard> read_limit(std::string_view name, const std::string& root);

}  // namespace weir::os
