// The hostile handshakes of `weir check`: what to send, and the answer that each must get.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"
#include "tools/weir/check/client_hello.hpp"
#include "tools/weir/check/tls_wire.hpp"

namespace weir::check {

/// Alerts of TLS (RFC 8446, 6).
namespace alert {
inline constexpr std::uint8_t unexpected_message = 10;
inline constexpr std::uint8_t record_overflow = 22;
inline constexpr std::uint8_t handshake_failure = 40;
inline constexpr std::uint8_t illegal_parameter = 47;
inline constexpr std::uint8_t decode_error = 50;
inline constexpr std::uint8_t protocol_version = 70;
inline constexpr std::uint8_t insufficient_security = 71;
inline constexpr std::uint8_t inappropriate_fallback = 86;
inline constexpr std::uint8_t unrecognized_name = 112;
inline constexpr std::uint8_t no_application_protocol = 120;
}  // namespace alert

/// The answer that a hostile handshake must get.
enum class Wanted : std::uint8_t {
  rejected,      ///< one of the alerts of the case
  served,        ///< a ServerHello
  answered,      ///< an alert or a ServerHello
  told,          ///< 400 in plain text; --lenient accepts any other end without a ServerHello
  disconnected,  ///< any end without a ServerHello, and no 2xx in plain text
  ended,         ///< a ServerHello, and an alert or a close after the second bytes
};

using MakeBytes = std::string (*)(const CheckTarget& target);

/// A HelloCase sends one ClientHello that `change` has made of a usual one, or any other bytes.
struct HelloCase {
  std::string_view name;
  std::string_view why;
  ClientHello (*hello)(const CheckTarget& target) = hello_of_1_3;
  void (*change)(ClientHello& hello) = nullptr;
  MakeBytes bytes = nullptr;   ///< bytes to send instead of a ClientHello
  MakeBytes second = nullptr;  ///< bytes to send after the ServerHello
  Wanted wanted = Wanted::rejected;
  std::vector<std::uint8_t> alerts = {};
  /// Returns true if the ServerHello is right; nullptr: any is.
  bool (*accepts)(const ServerHello& hello) = nullptr;
  bool may_serve = false;  ///< true: --lenient accepts a ServerHello
};

/// Returns the bytes that the case sends first.
std::string first_bytes(const HelloCase& test_case, const CheckTarget& target);

/// Returns all hostile handshakes, in a fixed order.
/// Lifetime: as long as the process.
const std::vector<HelloCase>& hello_cases();

/// Describes the answer that the case must get: "alert 40 or 71".
std::string describe_wanted(const HelloCase& test_case);

}  // namespace weir::check
