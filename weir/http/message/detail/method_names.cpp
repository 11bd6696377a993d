// The numbering of methods that routes name.
#include "weir/http/message/detail/method_names.hpp"

#include <algorithm>

namespace weir::http {

std::optional<MethodIndex> MethodNames::find_other(std::string_view name) const noexcept {
  const auto found = std::find(others_.begin(), others_.end(), name);
  if (found == others_.end()) return std::nullopt;
  return static_cast<MethodIndex>(index_of(Method::other) + (found - others_.begin()));
}

std::optional<MethodIndex> MethodNames::add(std::string_view name) {
  if (const auto found = find(method_of(name), name)) return found;
  const std::size_t index = index_of(Method::other) + others_.size();
  if (index >= methods_max) return std::nullopt;
  others_.emplace_back(name);
  return static_cast<MethodIndex>(index);
}

std::string_view MethodNames::name(MethodIndex index) const noexcept {
  const MethodIndex other = index_of(Method::other);
  return index < other ? name_of(static_cast<Method>(index)) : others_[index - other];
}

std::string MethodNames::allow(MethodSet methods) const {
  std::vector<std::string_view> names;
  for (MethodIndex index = 0; index < methods_max; ++index) {
    if ((methods & set_of(index)) != 0) names.push_back(name(index));
  }
  std::sort(names.begin(), names.end());
  std::string line;
  for (const std::string_view each : names) {
    if (!line.empty()) line += ", ";
    line += each;
  }
  return line;
}

}  // namespace weir::http
