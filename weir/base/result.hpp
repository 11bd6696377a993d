// Result<T>: a value or an error code, which the caller must check.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weir {

/// The errors of Weir itself, as std::error_code values. An error that the kernel reports stays a
/// std::system_category code. The values are stable and may be logged and compared as numbers.
enum class Errc {
  cancelled = 1,           ///< cancelled without effect, except that a write may be partly done
  timed_out = 2,           ///< the deadline passed before the operation completed
  end_of_stream = 3,       ///< the peer ended its stream in an orderly way
  closed = 4,              ///< this side closed the object, or it is draining
  limit_reached = 5,       ///< a documented limit was reached: size, count or queue length
  bad_input = 6,           ///< the input violates its grammar
  unsupported = 7,         ///< not supported by this kernel, backend or build
  not_found = 8,           ///< a name, route or member does not exist
  conflict = 9,            ///< the request contradicts another request or an existing object
  bad_configuration = 10,  ///< an option has an invalid value
};

/// Returns the category of Errc, named "weir".
/// Threads: any.
/// Lifetime: the process.
const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// Returns the error code for an errno value.
inline std::error_code system_error(int errno_value) noexcept {
  return {errno_value, std::system_category()};
}

}  // namespace weir

template <>
struct std::is_error_code_enum<weir::Errc> : std::true_type {};

namespace weir {

/// A Result holds a T or a std::error_code. It has the whole interface of std::expected. It is a
/// class and not an alias, so that the compiler warns wherever a result is ignored. A failure is
/// made with `fail(code)` or `std::unexpected(code)`.
///
/// Result<bool> does not compile, because `if (result)` would be true for a successful false, such
/// as a wrong password. Return an enum instead.
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

/// Returns the failure `code`, which converts to every Result.
inline std::unexpected<std::error_code> fail(std::error_code code) noexcept {
  return std::unexpected<std::error_code>(code);
}

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

namespace detail {

/// The type that reports both a T and an error: Result<T>, also for a T that is a Result<T>.
template <class T>
struct AsResult {
  using type = Result<T>;
};
template <class T>
struct AsResult<Result<T>> {
  using type = Result<T>;
};

}  // namespace detail

}  // namespace weir
