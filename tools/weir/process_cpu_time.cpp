// Reads the CPU time of processes from /proc.
#include "tools/weir/process_cpu_time.hpp"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "weir/os/detail/io/text_file.hpp"

namespace weir::bench {
namespace {

/// Returns the number at the given position (from 0) of a line of words.
std::optional<std::int64_t> number_at(std::string_view line, int place) {
  for (; place > 0; --place) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    line.remove_prefix(space + 1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  return error == std::errc() && end != line.data() ? std::optional(value) : std::nullopt;
}

std::optional<Duration> thread_time(const std::string& folder) {
  if (const auto text = os::read_text_file(folder + "/schedstat")) {
    if (const auto time = number_at(*text, 0); time && *time != 0) return Duration(*time);
  }
  const auto text = os::read_text_file(folder + "/stat");
  if (!text) return std::nullopt;
  // The second field is the name in brackets, which may contain spaces. The fields utime and
  // stime are 14 and 15.
  const std::size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(name_end + 2);
  const auto user = number_at(rest, 11);
  const auto system = number_at(rest, 12);
  if (!user || !system) return std::nullopt;
  const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  return Duration((*user + *system) * tick);
}

}  // namespace

Result<Duration> process_cpu_time(std::span<const int> processes) {
  Duration total{};
  for (const int process : processes) {
    std::error_code error;
    const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
    std::size_t found = 0;
    for (std::filesystem::directory_iterator each(threads, error), end; !error && each != end;
         each.increment(error)) {
      const auto time = thread_time(each->path().string());
      if (!time) continue;  // the thread has just ended
      total += *time;
      ++found;
    }
    if (found == 0) return fail(Errc::not_found);
  }
  return total;
}

}  // namespace weir::bench
