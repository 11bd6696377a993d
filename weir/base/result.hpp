// Result<T>: a value or an error code, which the caller must check.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>  // std::ignore
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
/// made with `fail(code)` or `std::unexpected(code)`. WEIR_TRY and WEIR_CO_TRY pass a failure on to
/// the caller. `std::ignore = ...` ignores a result on purpose.
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

/// True for a type that WEIR_TRY takes. A Task is none: it has a result only after co_await.
template <class R>
inline constexpr bool can_be_tried = requires(R& result) {
  static_cast<bool>(result);
  result.error();
};

/// Returns the failure of a result, a std::expected or a class that derives from one.
template <class R>
auto failure_of(R& result) {
  return std::unexpected(std::move(result.error()));
}

}  // namespace detail

}  // namespace weir

/// WEIR_TRY returns the error of a failed result from the function. WEIR_CO_TRY does so from a
/// coroutine that returns a Task<Result<T>>:
///
///     WEIR_CO_TRY(auto size, co_await stream.read_into(buffer));  // declares `size`
///     WEIR_CO_TRY(size, co_await stream.read_into(buffer));       // assigns to `size`
///     WEIR_CO_TRY(co_await stream.write(bytes));                  // needs no value
///     WEIR_TRY(const auto port, parse_port(text));                // in a plain function
///
/// The forms with a value are several statements: an `if` in front of them needs braces. They move
/// the value out of the result. `auto&&` refers to the value until the end of the block. The
/// expression of the form without a value has no comma outside of parentheses: write
/// `WEIR_TRY((check<int, int>()));`. The result may be a std::expected with any error that
/// converts to the error of the function.
#define WEIR_TRY(first, ...)                                                       \
  WEIR_DETAIL_TRY_FORM(__VA_OPT__(WEIR_DETAIL_TRY_VALUE, ) WEIR_DETAIL_TRY_NONE, ) \
  (return, __COUNTER__, first, __VA_ARGS__)
#define WEIR_CO_TRY(first, ...)                                                    \
  WEIR_DETAIL_TRY_FORM(__VA_OPT__(WEIR_DETAIL_TRY_VALUE, ) WEIR_DETAIL_TRY_NONE, ) \
  (co_return /* the coroutine returns a Task<Result<T>> */, __COUNTER__, first, __VA_ARGS__)

// One more step replaces __COUNTER__ before it becomes part of a name.
#define WEIR_DETAIL_TRY_FORM(form, ...) form
#define WEIR_DETAIL_TRY_VALUE(leave, number, target, ...) \
  WEIR_DETAIL_TRY_VALUE_OF(leave, weir_try_, number, target, __VA_ARGS__)
#define WEIR_DETAIL_TRY_NONE(leave, number, expression, ...) \
  WEIR_DETAIL_TRY_NONE_OF(leave, weir_try_, number, expression)
#define WEIR_DETAIL_TRY_VALUE_OF(leave, name, number, target, ...)   \
  auto name##number = __VA_ARGS__;                                   \
  WEIR_DETAIL_TRY_CHECK(name##number);                               \
  if (!name##number) leave ::weir::detail::failure_of(name##number); \
  target = std::move(*name##number)
#define WEIR_DETAIL_TRY_NONE_OF(leave, name, number, expression)       \
  do {                                                                 \
    auto name##number = expression;                                    \
    WEIR_DETAIL_TRY_CHECK(name##number);                               \
    if (!name##number) leave ::weir::detail::failure_of(name##number); \
  } while (false)
#define WEIR_DETAIL_TRY_CHECK(name)                              \
  static_assert(::weir::detail::can_be_tried<decltype(name)>,    \
                "WEIR_TRY and WEIR_CO_TRY take a Result: write " \
                "co_await before the call if it returns a Task")
