// Accept-Encoding: the content codings that a client accepts, and the choice among those on offer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/compression/coding.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http {

/// A content coding (RFC 9110 §8.4.1). `identity` means that the content is not encoded.
using ContentCoding = compression::Coding;

inline constexpr std::size_t content_codings = compression::coding_count;

/// AcceptEncoding holds the preferences of one request (RFC 9110 §12.5.3). Members of the list that
/// violate its grammar, and codings without an enumerator, are ignored.
/// Threads: one at a time.
class AcceptEncoding {
 public:
  /// Makes the preferences of a request without the header. choose() then returns identity.
  AcceptEncoding() noexcept { qualities_.fill(unset); }
  /// Reads all Accept-Encoding headers of a request.
  explicit AcceptEncoding(const RequestHead& head) noexcept;

  /// Adds the members of one header.
  void add(std::string_view value) noexcept;

  /// Returns the quality in thousandths, from 0 to 1000; 0 means that the client rejects the
  /// coding. Without a member for identity its quality is 1, below that of every listed coding.
  int quality(ContentCoding coding) const noexcept;

  /// Returns the coding of the highest quality among `offered` and identity. Earlier codings of
  /// `offered` come first among equal ones. Returns identity if the client accepts none: such
  /// a header is disregarded, as RFC 9110 §12.5.3 allows.
  ContentCoding choose(std::span<const ContentCoding> offered) const noexcept;

 private:
  static constexpr std::int16_t unset = -1;

  std::array<std::int16_t, content_codings> qualities_{};
  std::int16_t any_ = unset;  // quality of "*"
  bool given_ = false;        // true after a header, also an empty one
};

}  // namespace weir::http
