// Texts as template arguments, for checks of what a consteval constructor accepts.
#pragma once

#include <algorithm>
#include <cstddef>

namespace weir::http {

/// A literal that is a template argument.
template <std::size_t N>
struct CompileTimeText {
  consteval CompileTimeText(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

/// `typename CompileTimeUse<(made, 0)>` is valid if `made` compiles as a constant.
template <auto Value>
struct CompileTimeUse {};

}  // namespace weir::http
