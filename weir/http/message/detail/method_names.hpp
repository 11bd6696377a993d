// The methods that a router's routes have, as bits: the known ones and those that routes name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/method.hpp"

namespace weir::http {

/// A small number for each method; a set of methods is a MethodSet with these bits.
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

/// Threads: const members anywhere.
class MethodNames {
 public:
  /// The number of a method, given one if it is new; nothing when all numbers are taken.
  std::optional<MethodIndex> add(std::string_view name);
  /// The number of a method; nothing for a name that no route has.
  std::optional<MethodIndex> find(Method method, std::string_view name) const noexcept {
    if (method != Method::other) return index_of(method);
    return find_other(name);
  }
  /// The value of an Allow field (RFC 9110 §10.2.1): the names, sorted, between commas.
  std::string allow(MethodSet methods) const;

 private:
  std::optional<MethodIndex> find_other(std::string_view name) const noexcept;
  std::string_view name(MethodIndex index) const noexcept;

  std::vector<std::string> others_;  // their numbers begin at Method::other
};

}  // namespace weir::http
