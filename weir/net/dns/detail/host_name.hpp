// Host names and IP addresses in text: what may be asked for, and what needs no asking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

namespace weir::names {

/// The two kinds of address that a name can have.
enum class Family : std::uint8_t { ipv6, ipv4 };

/// A host name in the form in which names are compared.
struct HostName {
  std::string text;       ///< in lower case, without a dot at its end
  bool absolute = false;  ///< there was one: it is the whole name, and no search domain is tried
};

/// Labels of letters, digits, '-' and '_' with dots between them, none longer than 63 bytes, 253 in
/// all (RFC 1035 §2.3.4, RFC 1123 §2.1); '-' neither begins nor ends one. A name whose last label
/// is a number is none (RFC 3696 §2): "127.1" or "256.1.1.1" must not become a question to
/// strangers. International names come in their ASCII form (xn--…). Errors: Errc::bad_input.
Result<HostName> parse_host_name(std::string_view text);

/// `127.0.0.1`, `::1`, `[::1]`, `fe80::1%eth0`: an address that stands for itself.
std::optional<Endpoint> parse_ip_address(std::string_view text, std::uint16_t port);

/// localhost and what ends in .localhost: this machine, whatever anybody says (RFC 6761 §6.3).
/// `text` is a HostName's.
bool is_local_host(std::string_view text) noexcept;
/// ::1 or 127.0.0.1.
Endpoint local_host_address(Family family) noexcept;

}  // namespace weir::names
