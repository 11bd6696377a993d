// Why a name could not be resolved, as std::error_code values.
#pragma once

#include <cstddef>
#include <system_error>

namespace weir::names {

/// What came of asking. Beside these there are weir::Errc: `bad_input` for what is no host name,
/// `limit_reached` when too many look-ups ask servers, `cancelled`.
/// Values are stable: they may be logged and compared as numbers.
enum class Failure {
  no_address = 1,     ///< the name exists and has no address (of the family that was asked for)
  not_found = 2,      ///< there is no such name (NXDOMAIN)
  unreachable = 3,    ///< nobody is there where the name servers should be
  timed_out = 4,      ///< no name server answered in time
  malformed = 5,      ///< what a name server said cannot be understood
  refused = 6,        ///< a name server does not answer questions like this one (REFUSED, NOTIMP)
  server_failed = 7,  ///< a name server could not find out (SERVFAIL)
};
inline constexpr std::size_t failure_count = 7;

/// The category of Failure; its name is "weir.names". Thread-safe, lives as long as the process.
const std::error_category& failure_category() noexcept;

inline std::error_code make_error_code(Failure failure) noexcept {
  return {static_cast<int>(failure), failure_category()};
}

/// Of two that came of one undertaking, the one that says more about what is wrong: how somebody
/// answered before that nobody did, and that before there being nothing to ask for. The first, if
/// they say as much; the other, if one is no error.
std::error_code more_telling(std::error_code first, std::error_code second) noexcept;

}  // namespace weir::names

template <>
struct std::is_error_code_enum<weir::names::Failure> : std::true_type {};
