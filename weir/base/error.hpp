// The errors that Weir itself reports, as std::error_code values beside the operating system's.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace weir {

/// What can go wrong inside Weir. What the kernel reports stays a std::system_category code.
/// Values are stable: they may be logged and compared as numbers.
enum class Errc {
  cancelled = 1,           ///< somebody asked the operation to stop, and it did nothing
  timed_out = 2,           ///< a deadline passed first
  end_of_stream = 3,       ///< the peer finished sending, orderly
  closed = 4,              ///< this side closed the object, or it is draining
  limit_reached = 5,       ///< a documented limit was hit: size, count or queue length
  bad_input = 6,           ///< input does not follow its grammar
  unsupported = 7,         ///< this kernel, backend or build cannot do it
  not_found = 8,           ///< a name, route or member does not exist
  conflict = 9,            ///< two things that exclude each other were asked for
  bad_configuration = 10,  ///< an option has a value that cannot be served
};

/// The category of Errc; its name is "weir". Thread-safe, lives as long as the process.
const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// The error code for an errno value.
inline std::error_code system_error(int errno_value) noexcept {
  return {errno_value, std::system_category()};
}

}  // namespace weir

template <>
struct std::is_error_code_enum<weir::Errc> : std::true_type {};
