#include "weir/web/forms/detail/multipart_parser.hpp"

#include <algorithm>
#include <cstring>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http::detail {
namespace {

constexpr std::size_t padding_bytes_max = 64;  // white space behind a boundary

}  // namespace

MultipartParser::MultipartParser(std::string_view boundary, const MultipartLimits& limits)
    : limits_(limits),
      delimiter_("\r\n--" + std::string(boundary) + "--"),
      boundary_size_(delimiter_.size() - 2) {
  begin_match(line_end.size());  // a body begins like a line
}

MultipartParser::Event MultipartParser::fail(MultipartError error) noexcept {
  state_ = State::failed;
  error_ = error;
  return Event::error;
}

MultipartParser::Event MultipartParser::next(std::string_view& input) {
  switch (state_) {
    case State::preamble:
    case State::epilogue:
      return next_outside(input);
    case State::content:
      return next_content(input);
    case State::line_rest:
      return next_in_line(input);
    case State::head:
      return next_in_head(input);
    case State::failed:
      break;
  }
  return Event::error;
}

bool MultipartParser::finish() noexcept {
  if (state_ == State::epilogue) return true;
  if (state_ != State::failed) fail(MultipartError::missing_end);
  return false;
}

/// Begins with `count` bytes of the delimiter that are no content.
void MultipartParser::begin_match(std::size_t count) noexcept {
  matched_ = count;
  assumed_ = count;
}

/// Compares the input with the rest of the delimiter, and takes what is equal. No byte of a
/// delimiter but the first is CR, so no other delimiter can begin inside of one that differs.
MultipartParser::Match MultipartParser::match(std::string_view& input) noexcept {
  while (matched_ < delimiter_.size()) {
    if (input.empty()) return Match::need_input;
    const char next = input.front();
    if (next != delimiter_[matched_]) {
      const bool ends_line = next == '\r' || is_space(next);
      return matched_ == boundary_size_ && ends_line ? Match::boundary : Match::differs;
    }
    ++matched_;
    input.remove_prefix(1);
  }
  return Match::last_boundary;
}

/// Returns the position of the first byte of a delimiter, or of one that the end of the input cuts
/// off; the size of the input if there is none.
std::size_t MultipartParser::find_delimiter(std::string_view input) const noexcept {
  const char* const start = input.data();
  const std::size_t size = input.size();
  const auto begins_at = [&](std::size_t at) {
    const std::size_t count = std::min(size - at, boundary_size_);
    return std::memcmp(start + at, delimiter_.data(), count) == 0;
  };
  std::size_t at = 0;
  // CR and the '-' two bytes later are rare in texts as well as in binary files.
  for (; size - at >= SimdBlock::size + 2; at += SimdBlock::size) {
    unsigned mask = SimdBlock(start + at).equal_to('\r') & SimdBlock(start + at + 2).equal_to('-');
    for (; mask != 0; mask &= mask - 1) {
      const std::size_t found = at + static_cast<std::size_t>(first_bit(mask));
      if (begins_at(found)) return found;
    }
  }
  for (; at < size; ++at) {
    if (start[at] == '\r' && begins_at(at)) return at;
  }
  return size;
}

/// Drops the bytes before the first boundary or behind the last one.
MultipartParser::Event MultipartParser::next_outside(std::string_view& input) {
  if (end_due_) {
    end_due_ = false;
    return Event::end;
  }
  while (!input.empty()) {
    std::size_t dropped = 0;
    if (state_ == State::epilogue) {
      dropped = input.size();
    } else if (matched_ > 0) {
      const Match found = match(input);
      if (found == Match::need_input) break;
      if (found == Match::boundary) {
        state_ = State::line_rest;
        outer_bytes_ = 0;
        return next_in_line(input);
      }
      if (found == Match::last_boundary) {
        state_ = State::epilogue;
        outer_bytes_ = 0;
        return Event::end;
      }
      outer_bytes_ += matched_ - assumed_;
      begin_match(0);
    } else {
      dropped = find_delimiter(input);
      if (dropped == 0) {
        matched_ = 1;  // the CR
        input.remove_prefix(1);
      }
    }
    outer_bytes_ += dropped;
    input.remove_prefix(dropped);
    if (outer_bytes_ > limits_.outer_bytes_max) return fail(MultipartError::outer_bytes_too_long);
  }
  return Event::need_input;
}

MultipartParser::Event MultipartParser::next_content(std::string_view& input) {
  if (matched_ == 0) {
    if (input.empty()) return Event::need_input;
    const std::size_t size = find_delimiter(input);
    if (size > 0) {
      data_ = input.substr(0, size);
      input.remove_prefix(size);
      return Event::data;
    }
    matched_ = 1;  // the CR
    input.remove_prefix(1);
  }
  switch (match(input)) {
    case Match::need_input:
      return Event::need_input;
    case Match::boundary:
      state_ = State::line_rest;
      outer_bytes_ = 0;
      return Event::part_end;
    case Match::last_boundary:
      state_ = State::epilogue;
      outer_bytes_ = 0;
      end_due_ = true;
      return Event::part_end;
    case Match::differs:
      break;
  }
  data_ = std::string_view(delimiter_).substr(assumed_, matched_ - assumed_);
  begin_match(0);
  return data_.empty() ? next_content(input) : Event::data;
}

/// Reads the rest of the line of a boundary: white space and CRLF.
MultipartParser::Event MultipartParser::next_in_line(std::string_view& input) {
  while (!input.empty()) {
    const char next = input.front();
    input.remove_prefix(1);
    if (after_cr_) {
      after_cr_ = false;
      if (next != '\n') return fail(MultipartError::bad_delimiter);
      if (parts_ == limits_.parts_max) return fail(MultipartError::too_many_parts);
      ++parts_;
      state_ = State::head;
      head_text_.assign(line_end);
      return next_in_head(input);
    }
    if (next == '\r') {
      after_cr_ = true;
    } else if (!is_space(next) || ++outer_bytes_ > padding_bytes_max) {
      return fail(MultipartError::bad_delimiter);
    }
  }
  return Event::need_input;
}

/// Collects the lines of a head. They begin with the CRLF of the line before, so that an empty line
/// ends a head without headers as well.
MultipartParser::Event MultipartParser::next_in_head(std::string_view& input) {
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    const bool ends = line.size() < input.size();
    const std::size_t size = line.size() + (ends ? 1 : 0);
    if (head_text_.size() + size > limits_.head_bytes_max + 2 * line_end.size()) {
      return fail(MultipartError::part_head_too_long);
    }
    head_text_.append(input.substr(0, size));
    input.remove_prefix(size);
    if (!ends) break;
    if (!head_text_.ends_with(line_end)) return fail(MultipartError::bad_part_head);
    if (head_text_.ends_with("\r\n\r\n")) return end_head();
  }
  return Event::need_input;
}

MultipartParser::Event MultipartParser::end_head() {
  std::string_view lines = head_text_;
  lines.remove_prefix(line_end.size());
  lines.remove_suffix(line_end.size());
  if (const auto error = head_.parse(lines, limits_)) return fail(*error);
  state_ = State::content;
  begin_match(line_end.size());  // the empty line: a part may have no content at all
  return Event::part;
}

}  // namespace weir::http::detail
