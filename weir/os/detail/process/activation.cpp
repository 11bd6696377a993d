#include "weir/os/detail/process/activation.hpp"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <utility>

namespace weir::os {
namespace {

constexpr int first_descriptor = 3;
// Greater than any limit on the descriptors of a process.
constexpr int count_max = 1 << 20;

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Removes and returns the part before the next colon.
std::string_view take_name(std::string_view& names) {
  const std::string_view name = names.substr(0, names.find(':'));
  names.remove_prefix(name.size() == names.size() ? name.size() : name.size() + 1);
  return name;
}

}  // namespace

Result<std::vector<ActivatedDescriptor>> parse_activation(const ActivationEnvironment& variables,
                                                          int own_pid) {
  std::vector<ActivatedDescriptor> passed;
  if (variables.pid.empty() || variables.count.empty()) return passed;
  const auto pid = number_of(variables.pid);
  if (!pid || *pid <= 0) return fail(Errc::bad_input);
  if (*pid != own_pid) return passed;
  const auto count = number_of(variables.count);
  if (!count || *count < 0 || *count > count_max) return fail(Errc::bad_input);
  std::string_view names = variables.names;
  for (int index = 0; index < *count; ++index) {
    const std::string_view name = take_name(names);
    passed.push_back({first_descriptor + index, std::string(name.empty() ? "unknown" : name)});
  }
  return passed;
}

int process_id() noexcept {
  return ::getpid();
}

}  // namespace weir::os
