// Messages of the domain name system (RFC 1035): a question as it is sent, and what the answer to
// it says. Bytes only; name_servers moves them.
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

/// What is asked for.
enum class RecordType : std::uint16_t { a = 1, aaaa = 28 };

/// A question about one name, ready to be sent.
class Query {
 public:
  /// `name` is that of a HostName. `id` is not to be guessed by others (RFC 5452 §9.2): from
  /// Host::random().
  Query(std::string_view name, RecordType type, std::uint16_t id) noexcept;

  Bytes bytes() const noexcept { return {bytes_.data(), size_}; }
  RecordType type() const noexcept { return type_; }
  /// The name as it stands in the message: labels, each behind its length.
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

/// What a server says of a question (RFC 1035 §4.1.1); other codes are possible.
enum class ResponseCode : std::uint8_t {
  none = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
};

struct Answer {
  ResponseCode code = ResponseCode::none;
  bool truncated = false;            ///< it was too long for a datagram; the rest here is empty
  std::vector<Endpoint> addresses;   ///< of the type asked for, in the server's order, port 0
  std::optional<Duration> lifetime;  ///< how long all this, or that there is none, may be kept
};

/// Whether `message` is the answer to `query`, and not what somebody else made up, or an earlier
/// one that comes late: its id and its question are the same. The question may be missing where the
/// server has not understood or does not want it.
bool answers(Bytes message, const Query& query) noexcept;

/// What a message says that answers(message, query): the first `addresses_max` addresses of the
/// name, or of what it is an alias for (CNAME; 16 in a row at most). The lifetime of a name or an
/// address that is not there is that of RFC 2308 §5. Errors: Errc::bad_input where it is malformed.
Result<Answer> read_answer(Bytes message, const Query& query, std::size_t addresses_max);

}  // namespace weir::dns
