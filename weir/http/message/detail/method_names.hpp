// The methods of a router's routes as bits of a set: known methods and those that routes name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/method.hpp"

namespace weir::http {

/// A small number for each method, used as the bit number in a MethodSet.
using MethodIndex = std::uint8_t;
using MethodSet = std::uint64_t;

inline constexpr std::size_t methods_max = 64;

constexpr MethodIndex index_of(Method method) noexcept {
  return static_cast<MethodIndex>(method);
}
constexpr MethodSet set_of(MethodIndex index) noexcept {
  return MethodSet{1} << index;
}
constexpr MethodSet set_of(Method method) noexcept {
  return set_of(index_of(method));
}

/// The numbers of all methods that a router's routes have.
/// Threads: const members on any thread.
class MethodNames {
 public:
  /// Returns the number of a method and assigns one to a new name; std::nullopt if all are taken.
  std::optional<MethodIndex> add(std::string_view name);
  /// Returns the number of a method; std::nullopt for a name that no route has.
  std::optional<MethodIndex> find(Method method, std::string_view name) const noexcept {
    if (method != Method::other) return index_of(method);
    return find_other(name);
  }
  /// Returns the value of an Allow header (RFC 9110 §10.2.1): the sorted names, separated by
  /// commas.
  std::string allow(MethodSet methods) const;

 private:
  std::optional<MethodIndex> find_other(std::string_view name) const noexcept;
  std::string_view name(MethodIndex index) const noexcept;

  std::vector<std::string> others_;  // numbered from Method::other on
};

}  // namespace weir::http
