// The parser's short way: heads of the usual form that are here whole. Most are, so this is what a
// request costs; what it reads it judges as the resumable machine of parser.cpp would, and where
// something is unusual it stops, for that machine to go on.
#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/http/syntax/detail/simd_block.hpp"
#include "weir/http/detail/h1/parser.hpp"

namespace weir::http {
namespace {

constexpr std::string_view line_end = "\r\n";

std::string_view between(const char* start, const char* end) noexcept {
  return {start, static_cast<std::size_t>(end - start)};
}

}  // namespace

/// Takes the Host line if it is the one that was good before. Returns whether it was.
[[gnu::always_inline]] inline bool HeadParser::take_known_host(std::string_view text,
                                                               RequestHead& head) noexcept {
  RequestHead::About& about = head.about_;
  if (about.has_host || known_host_ == nullptr || !known_host_->begins(text)) return false;
  if (about.field_count >= limits_.fields_max) return false;
  const auto start = static_cast<std::uint32_t>(text.data() - head.base_);
  const RequestHead::Slice value{start + known_host_->value_offset(), known_host_->value_size()};
  head.fields_[about.field_count++] = {{start, known_host_->name_size()}, value};
  about.has_host = true;
  if (about.authority.length == 0) about.authority = value;
  return true;
}

/// Reads lines of the usual shape that are here whole, without the bookkeeping that others need:
/// "name: value" with one space or none, and no white space at the value's end. Stops in front of
/// the first other one; that is read_name()'s and read_value()'s.
[[gnu::noinline]] HeadParser::UsualLines HeadParser::read_usual_lines(const char* position,
                                                                      const char* end,
                                                                      RequestHead& head) noexcept {
  const char* const base = head.base_;
  const auto blank = [](char each) { return static_cast<unsigned char>(each) <= ' '; };
  while (position != end && !blank(*position)) {
    if (take_known_host(between(position, end), head)) {
      position += known_host_->line_size();
      continue;
    }
    const bool had_host = head.about_.has_host;
    const char* const colon =
        find_stop(base, position, end, [](const Block& block) { return block.not_plain_name(); });
    if (end - colon < 2 || *colon != ':' || colon == position) break;
    const char* const value = colon[1] == ' ' ? colon + 2 : colon + 1;
    const char* const stop =
        find_stop(base, value, end, [](const Block& block) { return block.controls(); });
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n') break;
    if (stop != value && (blank(*value) || blank(stop[-1]))) break;
    const std::uint32_t count = head.about_.field_count;
    if (count >= limits_.fields_max) break;
    RequestHead::FieldSlices& field = head.fields_[count];
    field = {head.slice_of(between(position, colon)), head.slice_of(between(value, stop))};
    head.about_.field_count = count + 1;
    const char* const line = std::exchange(position, stop + line_end.size());
    if (!may_matter(field.name.length)) continue;
    const Step step = note_field(between(line, colon), between(value, stop), head);
    if (step != Step::done) return {position, step};
    if (head.about_.has_host != had_host && known_host_ != nullptr) {
      known_host_->remember(between(line, position), between(line, colon), between(value, stop));
    }
  }
  return {position, Step::done};
}

/// Reads "GET target HTTP/1.1" or the same with POST, if that is what is there, whole. Returns
/// where the lines behind it start, or nullptr: then nothing counts as read.
[[gnu::always_inline]] inline const char* HeadParser::read_usual_request_line(
    std::string_view input, RequestHead& head) noexcept {
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
  head.about_ = {};
  head.about_.method = is_get ? Method::get : Method::post;
  head.about_.method_text = head.slice_of(between(line.data(), target - 1));
  const bool root = end - target >= 2 && target[1] == ' ';
  const char* stop =
      root ? target + 1
           : find_stop(line.data(), target, end, [](const Block& b) { return b.not_plain_path(); });
  if (stop != end && *stop == ' ') {
    head.about_.target = head.about_.path = head.slice_of(between(target, stop));
  } else {
    stop = find_target_end(line.data(), target, stop, end);
    if (stop == end || *stop != ' ') return nullptr;
    if (finish_target(between(target, stop), head) != Step::done) {
      refusal_ = Refusal::none;  // parse_further() will tell
      return nullptr;
    }
  }
  if (!between(stop + 1, end).starts_with(version)) return nullptr;
  head.about_.version_minor = 1;
  return stop + 1 + version.size();
}

ParseResult HeadParser::parse(std::string_view input, RequestHead& head) noexcept {
  assert(refusal_ == Refusal::none);
  if (stage_ != Stage::start || position_ != 0) return parse_further(input, head);
  const char* const lines = read_usual_request_line(input, head);
  if (lines == nullptr) return parse_further(input, head);
  const char* const base = input.data();
  const auto end_max = static_cast<std::size_t>(lines - base) + limits_.fields_bytes_max;
  const char* const end = base + std::min(input.size(), end_max);
  const UsualLines usual = read_usual_lines(lines, end, head);
  const auto position = static_cast<std::uint32_t>(usual.position - base);
  if (usual.step == Step::done && between(usual.position, end).starts_with(line_end) &&
      finish(head) == Step::complete) {
    head.about_.size = position + static_cast<std::uint32_t>(line_end.size());
    return {ParseResult::Kind::complete, Refusal::none, head.about_.size};
  }
  if (refusal_ != Refusal::none) return {ParseResult::Kind::refused, refusal_, 0};
  stage_ = Stage::line;
  position_ = position;
  end_max_ = static_cast<std::uint32_t>(end_max);
  return parse_further(input, head);
}

}  // namespace weir::http
