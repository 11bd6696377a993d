// Ranges of bytes that a client asks for, and the body that holds several (RFC 9110 §14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

/// A ByteRange is a part of a representation that is not empty.
struct ByteRange {
  std::uint64_t first = 0;  ///< offset of the first byte
  std::uint64_t size = 0;   ///< number of bytes, at least one

  bool operator==(const ByteRange&) const = default;
};

/// The ranges that a Range header selects.
struct SelectedRanges {
  enum class Kind : std::uint8_t {
    whole,          ///< the header does not apply: the response is 200 with everything
    partial,        ///< the response is 206
    unsatisfiable,  ///< the response is 416
  };
  Kind kind = Kind::whole;
  std::vector<ByteRange> ranges;  ///< at least one if `partial`
};

/// The most ranges of one request. A header with more of them is ignored.
inline constexpr std::size_t ranges_max = 16;

/// Selects the ranges of a representation with `size` bytes. Ranges that overlap, or whose distance
/// is smaller than the head of a part, are merged; the result is then in ascending order. A header
/// that is malformed, has another unit, or selects all bytes is ignored. A suffix that is longer
/// than the representation selects every byte.
SelectedRanges select_ranges(std::string_view header, std::uint64_t size);

/// Returns the value of Content-Range: "bytes 0-4/10".
std::string content_range(const ByteRange& range, std::uint64_t size);
/// Returns the value of Content-Range in a 416: "bytes */10".
std::string unsatisfied_range(std::uint64_t size);

/// A RangeParts writes the heads of the parts of a multipart/byteranges body (RFC 9110 §14.6).
class RangeParts {
 public:
  /// `boundary` must not occur in the content; `content_type` may be empty.
  RangeParts(std::string_view boundary, std::string_view content_type, std::uint64_t size)
      : boundary_(boundary), content_type_(content_type), size_(size) {}

  /// Returns the value of the response's Content-Type.
  std::string content_type() const;
  /// Returns the bytes before the bytes of a range.
  std::string head(const ByteRange& range) const;
  /// Returns the bytes after the last part.
  std::string end() const;
  /// Returns the number of bytes of the whole body.
  std::uint64_t length(const std::vector<ByteRange>& ranges) const;

 private:
  std::string boundary_;
  std::string content_type_;
  std::uint64_t size_;
};

}  // namespace weir::http
