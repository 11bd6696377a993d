// A text that is an argument of a template.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir {

/// A ConstantText is made of a literal in the argument list of a template, such as the name of a
/// header.
template <std::size_t N>
struct ConstantText {
  consteval ConstantText(const char (&literal)[N]) { std::copy_n(literal, N, characters); }
  constexpr std::string_view view() const noexcept { return {characters, N - 1}; }

  char characters[N] = {};
};

}  // namespace weir
