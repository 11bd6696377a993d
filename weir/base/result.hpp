// Result<T>: a value, or the reason why there is none, which the caller must look at.
#pragma once

#include <expected>
#include <type_traits>
#include <utility>

#include "weir/base/error.hpp"

namespace weir {

/// A T or a std::error_code. A class of its own, not an alias, so that ignoring one is a warning
/// everywhere. Result<bool> does not compile: `if (result)` on a wrong password would be true; use
/// an enum. Everything std::expected offers is there; make a failure with `fail(code)` or
/// `std::unexpected(code)`.
template <class T = void>
class [[nodiscard]] Result : public std::expected<T, std::error_code> {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, bool>,
                "Result<bool> reads as true when it holds false; return an enum instead");

 public:
  using Base = std::expected<T, std::error_code>;
  using Base::Base;
  Result() = default;
  Result(Base base) : Base(std::move(base)) {}
};

/// The failure `code`, convertible to every Result.
inline std::unexpected<std::error_code> fail(std::error_code code) noexcept {
  return std::unexpected<std::error_code>(code);
}

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

}  // namespace weir
