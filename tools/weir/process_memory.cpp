// Reads the memory of processes from /proc.
#include "tools/weir/process_memory.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "weir/os/detail/io/text_file.hpp"

namespace weir::bench {
namespace {

/// Returns the number of KiB in a line such as "VmRSS:     5120 kB", or 0.
std::uint64_t kibibytes(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == status.npos) return 0;
  std::string_view rest = status.substr(at + name.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

}  // namespace

Result<std::uint64_t> process_memory(std::span<const int> processes) {
  std::uint64_t total = 0;
  for (const int process : processes) {
    const auto status = os::read_text_file("/proc/" + std::to_string(process) + "/status");
    if (!status) return fail(Errc::not_found);
    total += 1024 * (kibibytes(*status, "VmRSS:") + kibibytes(*status, "VmSwap:"));
  }
  return total;
}

}  // namespace weir::bench
