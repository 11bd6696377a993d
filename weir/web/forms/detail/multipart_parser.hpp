// MultipartParser: the parser of multipart/form-data (RFC 7578, RFC 2046 §5.1). It takes bytes and
// gives events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/web/forms/detail/part_head.hpp"
#include "weir/web/forms/multipart_error.hpp"
#include "weir/web/forms/multipart_limits.hpp"

namespace weir::http::detail {

/// Parses a body piece by piece. The content of a part is not copied: data() is a view of the
/// piece. Bytes at the end of a piece that may begin a boundary are remembered as a number; if they
/// were content after all, data() is a view of the boundary itself, which has the same bytes.
///
/// A boundary counts only in a line that has nothing else than white space behind it, or "--".
/// `--boundaryX` is content. The time is linear in the size of the body.
class MultipartParser {
 public:
  enum class Event : std::uint8_t {
    need_input,  ///< the input is empty: call next() with the next piece, or finish()
    part,        ///< a part begins; see head()
    data,        ///< the part continues with data()
    part_end,    ///< the part is complete
    end,         ///< the last boundary; bytes behind it are dropped
    error,       ///< the body is refused; see error()
  };

  /// `boundary` is that of boundary_of().
  MultipartParser(std::string_view boundary, const MultipartLimits& limits);

  /// Takes bytes from the beginning of `input` until the next event.
  Event next(std::string_view& input);
  /// Ends the body.
  /// Returns: false if the last boundary is missing, which error() then says.
  bool finish() noexcept;

  /// Returns the head of the current part. Lifetime: until the next event `part`.
  const PartHead& head() const noexcept { return head_; }
  /// Returns the content of an event `data`. Lifetime: that of the input, and of the parser.
  std::string_view data() const noexcept { return data_; }
  MultipartError error() const noexcept { return error_; }

 private:
  enum class State : std::uint8_t {
    preamble,   // before the first boundary
    content,    // in a part
    line_rest,  // behind a boundary, until the end of its line
    head,
    epilogue,  // behind the last boundary
    failed,
  };
  enum class Match : std::uint8_t { need_input, differs, boundary, last_boundary };

  Event fail(MultipartError error) noexcept;
  Event next_outside(std::string_view& input);
  Event next_content(std::string_view& input);
  Event next_in_line(std::string_view& input);
  Event next_in_head(std::string_view& input);
  Event end_head();
  Match match(std::string_view& input) noexcept;
  void begin_match(std::size_t count) noexcept;
  std::size_t find_delimiter(std::string_view input) const noexcept;

  MultipartLimits limits_;
  std::string delimiter_;        // CRLF "--" boundary "--"
  std::size_t boundary_size_;    // without the last "--"
  std::size_t matched_ = 0;      // bytes of delimiter_ before the input
  std::size_t assumed_ = 0;      // the first of them that are no content: the CRLF of a line before
  std::size_t outer_bytes_ = 0;  // before the first boundary, behind the last, or in its line
  std::size_t parts_ = 0;
  std::string head_text_;
  PartHead head_;
  std::string_view data_;
  State state_ = State::preamble;
  bool after_cr_ = false;
  bool end_due_ = false;  // the last boundary has ended a part
  MultipartError error_ = MultipartError::missing_end;
};

}  // namespace weir::http::detail
