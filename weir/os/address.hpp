// Where a socket is: an IPv4 or IPv6 address with a port, or a Unix socket's name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::os {

enum class AddressFamily : std::uint8_t {
  none,  ///< no address: a fresh Address, or a family that this program does not speak
  ipv4,
  ipv6,
  local,  ///< a Unix socket: a path, or a name in Linux' abstract namespace
};

/// A socket address in the kernel's own layout: a value of a fixed size, without an allocation.
/// Threads: a plain value.
class Address {
 public:
  /// Room for every family above, a Unix path of 107 bytes included.
  static constexpr std::size_t capacity = 112;

  Address() noexcept = default;

  /// Reads what to_string() writes, and short forms:
  ///   `127.0.0.1:8080`, `[::1]:8080`, `[fe80::1%eth0]:8080`; `:8080` and `8080`, which mean every
  ///   interface; `unix:/run/a.sock`, `unix:relative.sock`, `unix:@abstract`.
  /// Errc::bad_input for everything else: host names (a resolver's work) and ports above 65535 too.
  static Result<Address> parse(std::string_view text);

  /// Four bytes in the order people write them: {127, 0, 0, 1}.
  static Address ipv4(std::array<std::uint8_t, 4> bytes, std::uint16_t port) noexcept;
  /// `scope` is the interface index that a link-local address needs.
  static Address ipv6(std::array<std::uint8_t, 16> bytes, std::uint16_t port,
                      std::uint32_t scope = 0) noexcept;
  /// A path, or an abstract name where it starts with '@'. Errc::bad_input when it is empty, longer
  /// than 107 bytes or contains a zero byte.
  static Result<Address> local(std::string_view name);
  /// Every interface, IPv6 and IPv4: `[::]`.
  static Address any(std::uint16_t port) noexcept { return ipv6({}, port); }
  /// 127.0.0.1.
  static Address loopback(std::uint16_t port) noexcept { return ipv4({127, 0, 0, 1}, port); }

  AddressFamily family() const noexcept;
  bool is_inet() const noexcept;
  /// 0.0.0.0 or [::].
  bool is_any() const noexcept;
  /// 0 means that the kernel chooses, or that there is none.
  std::uint16_t port() const noexcept;
  /// The same address with another port. Changes nothing where there is none.
  Address with_port(std::uint16_t port) const noexcept;
  /// A Unix socket's path; empty for an abstract or unnamed one, and for other families.
  std::string_view path() const noexcept;

  /// `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/a.sock`, `unix:@abstract`, `unix:` (unnamed), `-`
  /// (none). Control bytes and backslashes in a name appear as \xNN, so the text is safe to log.
  std::string to_string() const;

  /// For the kernel: a sockaddr of size() bytes.
  const void* data() const noexcept { return bytes_.data(); }
  unsigned size() const noexcept { return size_; }

  /// For the kernel to write into: `capacity` bytes. Call set_size() with what it answered.
  void* buffer() noexcept { return bytes_.data(); }
  /// A size above `capacity` is cut to it.
  void set_size(std::size_t size) noexcept;

  friend bool operator==(const Address& left, const Address& right) noexcept;

 private:
  alignas(8) std::array<std::byte, capacity> bytes_{};
  unsigned size_ = 0;
};

}  // namespace weir::os

namespace weir {

/// Where a server listens or a client connects.
using Endpoint = os::Address;

}  // namespace weir
