// DNS messages (RFC 1035): building queries and parsing responses. DnsClient sends and receives
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir::dns {

/// The type of the queried records.
enum class RecordType : std::uint16_t { a = 1, aaaa = 28 };

/// An encoded query for one name.
class Query {
 public:
  /// Encodes a query for `name`, which is the text of a HostName. `id` must not be predictable (RFC
  /// 5452 §9.2); take it from Platform::random().
  Query(std::string_view name, RecordType type, std::uint16_t id) noexcept;

  Bytes bytes() const noexcept { return {bytes_.data(), size_}; }
  RecordType type() const noexcept { return type_; }
  /// Returns the encoded name: each label follows its length.
  Bytes name() const noexcept;

 private:
  void put(std::uint16_t value) noexcept;

  static constexpr std::size_t header_bytes = 12;
  static constexpr std::size_t name_bytes_max = 255;
  static constexpr std::size_t tail_bytes = 4;  // type and class
  std::array<std::byte, header_bytes + name_bytes_max + tail_bytes> bytes_{};
  std::size_t size_ = 0;
  RecordType type_;
};

/// The response code of a server (RFC 1035 §4.1.1). Other values are possible.
enum class ResponseCode : std::uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
};

struct Response {
  ResponseCode code = ResponseCode::no_error;
  bool truncated = false;           ///< true if the response was too long; the rest is then empty
  std::vector<Endpoint> addresses;  ///< queried addresses in the server's order, with port 0
  /// Time for which the addresses, or their absence, may be cached; nullopt: not given.
  std::optional<Duration> lifetime;
};

/// Returns true if `message` is the response to `query`, and not a forged or late one. Its id and
/// its question must be those of the query. The question may be missing if the code reports an
/// error other than no_such_name.
bool is_response_to(Bytes message, const Query& query) noexcept;

/// Parses a response. Requires is_response_to(message, query) (asserted). The result has the first
/// `addresses_max` addresses of the name or of its alias target (CNAME, at most 16 in a chain).
/// Only a response with code no_error has addresses. A name that has an address needs no alias. The
/// lifetime of an absent name or address follows RFC 2308 §5.
/// Errors: Errc::bad_input if the message is malformed.
Result<Response> parse_response(Bytes message, const Query& query, std::size_t addresses_max);

}  // namespace weir::dns
