// Address: an IPv4 or IPv6 address with a port, or the name of a Unix socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::os {

/// The family of a socket address: IPv4, IPv6 or a local path.
enum class AddressFamily : std::uint8_t {
  none,  ///< no address: a default-constructed Address, or an unknown family
  ipv4,
  ipv6,
  local,  ///< a Unix socket: a path, or a name in the abstract namespace of Linux
};

/// An Address is a socket address in the kernel's own layout. It has a fixed size and allocates
/// nothing.
/// Threads: those of a plain value.
class Address {
 public:
  /// The bytes of the longest address of any family, including a Unix path of 107 bytes.
  static constexpr std::size_t capacity = 112;

  Address() noexcept = default;

  /// Parses the output of to_string() and short forms. `:8080` and `8080` mean every interface.
  /// Other examples are `127.0.0.1:8080`, `[::1]:8080`, `[fe80::1%eth0]:8080`, `unix:/run/a.sock`,
  /// `unix:relative.sock` and `unix:@abstract`.
  /// Errors: Errc::bad_input for any other text, including ports above 65535 and host names, which
  /// need a resolver.
  static Result<Address> parse(std::string_view text);

  /// Returns the IPv4 address of four bytes in written order, such as {127, 0, 0, 1}.
  static Address ipv4(std::array<std::uint8_t, 4> bytes, std::uint16_t port) noexcept;
  /// Returns an IPv6 address. `scope` is the interface index that a link-local address needs, or 0.
  static Address ipv6(std::array<std::uint8_t, 16> bytes, std::uint16_t port,
                      std::uint32_t scope = 0) noexcept;
  /// Returns the address of a Unix socket. `name` is a path, or an abstract name if it starts with
  /// '@'.
  /// Errors: Errc::bad_input if the name is empty, has more than 107 bytes or contains a zero byte.
  static Result<Address> local(std::string_view name);
  /// Returns the address of every interface for IPv6 and IPv4, `[::]`.
  static Address any(std::uint16_t port) noexcept { return ipv6({}, port); }
  /// Returns the address 127.0.0.1.
  static Address loopback(std::uint16_t port) noexcept { return ipv4({127, 0, 0, 1}, port); }

  AddressFamily family() const noexcept;
  /// Returns true for an IPv4 or IPv6 address.
  bool is_inet() const noexcept;
  /// Returns true for 0.0.0.0 and [::].
  bool is_any() const noexcept;
  /// Returns the port. It is 0 if the kernel is to choose one or the family has no ports.
  std::uint16_t port() const noexcept;
  /// Returns this address with another port, or an unchanged copy if the family has no ports.
  Address with_port(std::uint16_t port) const noexcept;
  /// Returns the path of a Unix socket. It is empty for an abstract or unnamed socket and for other
  /// families.
  std::string_view path() const noexcept;

  /// Returns a text such as `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/a.sock` or `unix:@abstract`.
  /// An unnamed Unix socket is `unix:`, and no address is `-`. Backslashes and bytes of a name that
  /// are not printable are written as \xNN, so that the text is safe to log. It may have spaces.
  std::string to_string() const;

  /// Returns the sockaddr of size() bytes for a system call.
  const void* data() const noexcept { return bytes_.data(); }
  unsigned size() const noexcept { return size_; }

  /// Returns the `capacity` bytes into which a system call writes. The caller then calls set_size()
  /// with the size that the call returned.
  void* buffer() noexcept { return bytes_.data(); }
  /// Sets the size. A size above `capacity` is reduced to `capacity`.
  void set_size(std::size_t size) noexcept;

  friend bool operator==(const Address& left, const Address& right) noexcept;

 private:
  alignas(8) std::array<std::byte, capacity> bytes_{};
  unsigned size_ = 0;
};

}  // namespace weir::os

namespace weir {

/// The address at which a server listens or to which a client connects.
using Endpoint = os::Address;

}  // namespace weir
