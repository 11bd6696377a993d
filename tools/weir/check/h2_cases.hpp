// The hostile frames of `weir check`: what to send, and the answer that each must get.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"
#include "weir/http/detail/h2/frame.hpp"

namespace weir::check {

/// The answer that the frames must get.
enum class H2Wanted : std::uint8_t {
  served,        ///< the answer of the baseline
  stream_error,  ///< RST_STREAM with the error of the case; 4xx and a connection error also pass
  connection_error,  ///< GOAWAY with the error of the case
  bounded,           ///< any end of the connection, or no answer to the PING that ends the frames
  cut_off,           ///< an end of stream 1 or of the connection in CheckTarget::slow_timeout
  held,  ///< the server holds at most CheckTarget::memory_max more, and others are served
};

/// An H2Case sends frames after the preface and SETTINGS. Streams begin with 1.
struct H2Case {
  std::string_view name;
  std::string_view why;
  std::string (*frames)(const CheckTarget& target);
  H2Wanted wanted = H2Wanted::stream_error;
  http::H2Error error = http::H2Error::protocol_error;
  std::string_view piece = {};  ///< frames that follow every half second; only for `cut_off`
  bool reads = true;            ///< false: the client does not read; only for `held`
  bool may_serve = false;       ///< true: a lenient check accepts a served flood
};

/// Returns all cases, in a fixed order.
/// Lifetime: as long as the process.
const std::vector<H2Case>& h2_cases();

/// Returns the cases that make a server work, wait or hold memory.
std::vector<H2Case> h2_attack_cases();

/// Describes the answer that the case must get.
std::string describe_wanted(const H2Case& test_case);

}  // namespace weir::check
