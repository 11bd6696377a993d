// The parser's fast path for complete heads of the common form, which most requests have. It
// accepts and rejects the same bytes as the resumable parser in parser.cpp. It stops at the first
// unusual part and leaves the rest to that parser.
#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {

/// Reads the Host line if it equals the cached one. Returns true if it did.
[[gnu::always_inline]] inline bool HeadParser::take_cached_host(std::string_view text,
                                                                MessageHead& head) noexcept {
  MessageHead::HeadInfo& info = head.info_;
  if (info.has_host || host_line_cache_ == nullptr || !host_line_cache_->matches(text))
    return false;
  if (info.header_count >= fast_headers_max_) return false;
  const auto start = static_cast<std::uint32_t>(text.data() - head.base_);
  const MessageHead::Slice value{start + host_line_cache_->value_offset(),
                                 host_line_cache_->value_size()};
  head.headers_[info.header_count++] = {{start, host_line_cache_->name_size()}, value};
  info.has_host = true;
  if (info.authority.length == 0) info.authority = value;
  return true;
}

/// Reads complete lines of the form "name: value" without the state that other lines need. The
/// form has at most one space after the colon and no white space at the value's end. Stops before
/// the first other line, which read_name() and read_value() handle.
[[gnu::noinline]] HeadParser::FastPathLines HeadParser::read_lines_fast(
    const char* position, const char* end, MessageHead& head) noexcept {
  const char* const base = head.base_;
  const auto blank = [](char each) { return static_cast<unsigned char>(each) <= ' '; };
  while (position != end && !blank(*position)) {
    if (take_cached_host(between(position, end), head)) {
      position += host_line_cache_->line_size();
      continue;
    }
    const bool had_host = head.info_.has_host;
    const char* const colon = find_stop(
        base, position, end, [](const SimdBlock& block) { return block.not_plain_name(); });
    if (end - colon < 2 || *colon != ':' || colon == position) break;
    const char* const value = colon[1] == ' ' ? colon + 2 : colon + 1;
    const char* const stop =
        find_stop(base, value, end, [](const SimdBlock& block) { return block.controls(); });
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n') break;
    if (stop != value && (blank(*value) || blank(stop[-1]))) break;
    const std::uint32_t count = head.info_.header_count;
    if (count >= fast_headers_max_) break;
    MessageHead::HeaderSlices& header = head.headers_[count];
    header = {head.slice_of(between(position, colon)), head.slice_of(between(value, stop))};
    head.info_.header_count = count + 1;
    const char* const line = std::exchange(position, stop + line_end.size());
    if (!may_be_known_header(header.name.length)) continue;
    const Step step = handle_header(between(line, colon), between(value, stop), head);
    if (step != Step::done) return {position, step};
    if (head.info_.has_host != had_host && host_line_cache_ != nullptr) {
      host_line_cache_->store(between(line, position), between(line, colon), between(value, stop));
    }
  }
  return {position, Step::done};
}

/// Reads a complete "GET target HTTP/1.1" or "POST target HTTP/1.1" if the input starts with it.
/// Returns the start of the lines after it. Returns nullptr for any other input, which then
/// counts as unread.
[[gnu::always_inline]] inline const char* HeadParser::read_request_line_fast(
    std::string_view input, MessageHead& head) noexcept {
  constexpr std::string_view get = "GET ";
  constexpr std::string_view post = "POST ";
  constexpr std::string_view version = "HTTP/1.1\r\n";
  const std::string_view line =
      input.substr(0, std::size_t{limits_.request_line_max} + line_end.size());
  const bool is_get = line.starts_with(get);
  if (!is_get && !line.starts_with(post)) return nullptr;
  const char* const end = line.data() + line.size();
  const char* const target = line.data() + (is_get ? get.size() : post.size());
  if (target == end || *target != '/') return nullptr;
  head.base_ = input.data();
  head.info_ = {};
  head.info_.method = is_get ? Method::get : Method::post;
  head.info_.method_text = head.slice_of(between(line.data(), target - 1));
  const bool root = end - target >= 2 && target[1] == ' ';
  const char* stop = root ? target + 1
                          : find_stop(line.data(), target, end,
                                      [](const SimdBlock& b) { return b.not_plain_path(); });
  if (stop != end && *stop == ' ') {
    head.info_.target = head.info_.path = head.slice_of(between(target, stop));
  } else {
    stop = find_target_end(line.data(), stop, end);
    if (stop == end || *stop != ' ') return nullptr;
    if (finish_target(between(target, stop), head) != Step::done) {
      error_ = ParseError::none;  // parse_resumable() finds it again
      return nullptr;
    }
  }
  if (!between(stop + 1, end).starts_with(version)) return nullptr;
  head.info_.version_minor = 1;
  return stop + 1 + version.size();
}

ParseResult HeadParser::parse(std::string_view input, RequestHead& head) noexcept {
  assert(error_ == ParseError::none);
  if (stage_ != Stage::start || position_ != 0) return parse_resumable(input, head);
  const char* const lines = read_request_line_fast(input, head);
  if (lines == nullptr) return parse_resumable(input, head);
  const char* const base = input.data();
  const auto end_max = static_cast<std::size_t>(lines - base) + limits_.headers_bytes_max;
  const char* const end = base + std::min(input.size(), end_max);
  const FastPathLines usual = read_lines_fast(lines, end, head);
  const auto position = static_cast<std::uint32_t>(usual.position - base);
  if (usual.step == Step::done && between(usual.position, end).starts_with(line_end) &&
      finish(head) == Step::complete) {
    head.info_.size = position + static_cast<std::uint32_t>(line_end.size());
    return {ParseResult::Kind::complete, ParseError::none, head.info_.size};
  }
  if (error_ != ParseError::none) return {ParseResult::Kind::error, error_, 0};
  stage_ = Stage::line;
  position_ = position;
  end_max_ = static_cast<std::uint32_t>(end_max);
  return parse_resumable(input, head);
}

}  // namespace weir::http
