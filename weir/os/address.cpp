// Conversions of addresses between text and the kernel's sockaddr.
#include "weir/os/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "weir/base/text/detail/printable.hpp"

namespace weir::os {
namespace {

static_assert(sizeof(sockaddr_un) <= Address::capacity);
static_assert(sizeof(sockaddr_in6) <= Address::capacity);

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t path_max = sizeof(sockaddr_un::sun_path) - 1;

template <class T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

template <class Sockaddr>
Sockaddr view(const Address& address) noexcept {
  Sockaddr result{};
  std::memcpy(&result, address.data(), std::min<std::size_t>(sizeof result, address.size()));
  return result;
}

template <class Sockaddr>
Address wrap(const Sockaddr& value, std::size_t size = sizeof(Sockaddr)) noexcept {
  Address result;
  std::memcpy(result.buffer(), &value, size);
  result.set_size(size);
  return result;
}

/// Parses an IP address. inet_pton takes a zero-terminated string; no valid address is longer than
/// INET6_ADDRSTRLEN.
template <std::size_t Size>
std::optional<std::array<std::uint8_t, Size>> read_ip(int family, std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size() || text.find('\0') != text.npos) return std::nullopt;
  std::ranges::copy(text, copy.begin());
  std::array<std::uint8_t, Size> bytes{};
  if (::inet_pton(family, copy.data(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

/// Returns the interface index for the text after '%', which is a number or a name.
std::optional<std::uint32_t> read_scope(std::string_view text) {
  if (auto number = read_number<std::uint32_t>(text)) return number;
  if (text.empty() || text.size() >= IF_NAMESIZE) return std::nullopt;
  const std::uint32_t index = ::if_nametoindex(std::string(text).c_str());
  if (index == 0) return std::nullopt;
  return index;
}

Result<Address> parse_ipv6(std::string_view host, std::uint16_t port) {
  std::uint32_t scope = 0;
  if (const auto percent = host.find('%'); percent != host.npos) {
    const auto index = read_scope(host.substr(percent + 1));
    if (!index) return fail(Errc::bad_input);
    scope = *index;
    host = host.substr(0, percent);
  }
  const auto bytes = read_ip<16>(AF_INET6, host);
  if (!bytes) return fail(Errc::bad_input);
  return Address::ipv6(*bytes, port, scope);
}

/// Returns the name in printable text. A backslash is \x5c, so that no two names have one text.
std::string escape(std::string_view name) {
  std::string result;
  for (;;) {
    const std::size_t backslash = std::min(name.find('\\'), name.size());
    result += to_printable(name.substr(0, backslash));
    if (backslash == name.size()) return result;
    result += "\\x5c";
    name.remove_prefix(backslash + 1);
  }
}

/// Returns the bytes of a Unix socket's name. An abstract name starts with a zero byte.
std::string_view local_name(const Address& address) noexcept {
  if (address.size() <= path_offset) return {};
  const char* name = static_cast<const char*>(address.data()) + path_offset;
  const std::size_t length = address.size() - path_offset;
  if (name[0] == '\0') return {name, length};
  return {name, ::strnlen(name, length)};
}

std::string ip_text(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, bytes, text.data(), static_cast<socklen_t>(text.size()));
  return text.data();
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("unix:")) return local(text.substr(5));
  const auto colon = text.rfind(':');
  const auto port = read_number<std::uint16_t>(colon == text.npos ? text : text.substr(colon + 1));
  if (!port) return fail(Errc::bad_input);
  if (colon == text.npos || colon == 0) return any(*port);
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    return parse_ipv6(host.substr(1, host.size() - 2), *port);
  }
  const auto bytes = read_ip<4>(AF_INET, host);
  if (!bytes) return fail(Errc::bad_input);
  return ipv4(*bytes, *port);
}

Address Address::ipv4(std::array<std::uint8_t, 4> bytes, std::uint16_t port) noexcept {
  sockaddr_in value{};
  value.sin_family = AF_INET;
  value.sin_port = htons(port);
  std::memcpy(&value.sin_addr, bytes.data(), bytes.size());
  return wrap(value);
}

Address Address::ipv6(std::array<std::uint8_t, 16> bytes, std::uint16_t port,
                      std::uint32_t scope) noexcept {
  sockaddr_in6 value{};
  value.sin6_family = AF_INET6;
  value.sin6_port = htons(port);
  value.sin6_scope_id = scope;
  std::memcpy(&value.sin6_addr, bytes.data(), bytes.size());
  return wrap(value);
}

Result<Address> Address::local(std::string_view name) {
  const bool abstract = name.starts_with('@');
  const bool empty = name.size() == (abstract ? 1 : 0);
  if (empty || name.size() > path_max || name.find('\0') != name.npos) return fail(Errc::bad_input);
  sockaddr_un value{};
  value.sun_family = AF_UNIX;
  std::ranges::copy(name, value.sun_path);
  if (abstract) value.sun_path[0] = '\0';
  // The size delimits an abstract name; a zero byte ends a path.
  return wrap(value, path_offset + name.size() + (abstract ? 0 : 1));
}

AddressFamily Address::family() const noexcept {
  if (size_ < sizeof(sa_family_t)) return AddressFamily::none;
  switch (view<sockaddr>(*this).sa_family) {
    case AF_INET:
      return size_ >= sizeof(sockaddr_in) ? AddressFamily::ipv4 : AddressFamily::none;
    case AF_INET6:
      return size_ >= sizeof(sockaddr_in6) ? AddressFamily::ipv6 : AddressFamily::none;
    case AF_UNIX:
      return AddressFamily::local;
    default:
      return AddressFamily::none;
  }
}

bool Address::is_inet() const noexcept {
  const AddressFamily what = family();
  return what == AddressFamily::ipv4 || what == AddressFamily::ipv6;
}

bool Address::is_any() const noexcept {
  return is_inet() && with_port(0) == (family() == AddressFamily::ipv4 ? ipv4({}, 0) : any(0));
}

std::uint16_t Address::port() const noexcept {
  switch (family()) {
    case AddressFamily::ipv4:
      return ntohs(view<sockaddr_in>(*this).sin_port);
    case AddressFamily::ipv6:
      return ntohs(view<sockaddr_in6>(*this).sin6_port);
    default:
      return 0;
  }
}

Address Address::with_port(std::uint16_t port) const noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  Address result = *this;
  if (!is_inet()) return result;
  const std::uint16_t wire = htons(port);
  std::memcpy(result.bytes_.data() + offsetof(sockaddr_in, sin_port), &wire, sizeof wire);
  return result;
}

std::string_view Address::path() const noexcept {
  if (family() != AddressFamily::local) return {};
  const std::string_view name = local_name(*this);
  return name.starts_with('\0') ? std::string_view() : name;
}

std::string Address::to_string() const {
  switch (family()) {
    case AddressFamily::ipv4: {
      const auto value = view<sockaddr_in>(*this);
      return ip_text(AF_INET, &value.sin_addr) + ":" + std::to_string(port());
    }
    case AddressFamily::ipv6: {
      const auto value = view<sockaddr_in6>(*this);
      std::string host = ip_text(AF_INET6, &value.sin6_addr);
      if (value.sin6_scope_id != 0) host += "%" + std::to_string(value.sin6_scope_id);
      return "[" + host + "]:" + std::to_string(port());
    }
    case AddressFamily::local: {
      const std::string_view name = local_name(*this);
      if (name.starts_with('\0')) return "unix:@" + escape(name.substr(1));
      return "unix:" + escape(name);
    }
    case AddressFamily::none:
      break;
  }
  return "-";
}

void Address::set_size(std::size_t size) noexcept {
  size_ = static_cast<unsigned>(std::min(size, capacity));
}

bool operator==(const Address& left, const Address& right) noexcept {
  return left.size_ == right.size_ && std::memcmp(left.data(), right.data(), left.size_) == 0;
}

}  // namespace weir::os
