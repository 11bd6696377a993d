// The parser's handling of the headers that define the framing of a message or the target of
// a request.
#include <cstring>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

/// True if `name`, which is a token, equals `lower` (letters and '-') in any letter case. Setting
/// bit 0x20 folds letters and turns no other token character into a letter or '-'.
template <std::size_t size>
[[gnu::always_inline]] inline bool is_name(std::string_view name, const char (&lower)[size]) {
  const auto same = [&]<class Word>(std::size_t offset, Word fold) {
    Word bytes;
    Word expected;
    std::memcpy(&bytes, name.data() + offset, sizeof(Word));
    std::memcpy(&expected, lower + offset, sizeof(Word));
    return (bytes | fold) == expected;
  };
  constexpr std::size_t length = size - 1;
  static_assert(length >= 4 && length <= 24);
  constexpr std::uint32_t fold4 = 0x20202020U;
  constexpr std::uint64_t fold8 = 0x2020202020202020U;
  if constexpr (length < 8) {
    return same(0, fold4) && same(length - 4, fold4);
  } else if constexpr (length <= 16) {
    return same(0, fold8) && same(length - 8, fold8);
  } else {
    return same(0, fold8) && same(8, fold8) && same(length - 8, fold8);
  }
}

/// True for a common host with or without a common port. parse_authority() decides if this is
/// false. `base` is the first byte of the input.
[[gnu::noinline]] bool is_plain_authority(const char* base, std::string_view value) noexcept {
  const char* const end = value.data() + value.size();
  const char* colon = find_stop(base, value.data(), end,
                                [](const SimdBlock& block) { return block.not_plain_host(); });
  if (colon == value.data()) return false;
  if (colon == end) return true;
  const std::string_view port = between(colon + 1, end);
  constexpr std::string_view port_max = "65535";
  const bool in_range =
      port.size() < port_max.size() || (port.size() == port_max.size() && port <= port_max);
  return *colon == ':' && in_range && all_in(port, CharClass::digit);
}

}  // namespace

HeadParser::Step HeadParser::handle_header(std::string_view name, std::string_view value,
                                           MessageHead& head) noexcept {
  if (name.size() == 4) return is_name(name, "host") ? handle_host(value, head) : Step::done;
  return handle_rare_header(name, value, head);
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::handle_host(std::string_view value,
                                                                       MessageHead& head) noexcept {
  if (head.info_.has_host) {
    return reads_responses_ ? Step::done : fail_with(ParseError::repeated_host);
  }
  if (!is_plain_authority(head.base_, value) && !parse_authority(value)) {
    return reads_responses_ ? Step::done : fail_with(ParseError::bad_host);
  }
  head.info_.has_host = true;
  if (head.info_.authority.length == 0) head.info_.authority = head.slice_of(value);
  return Step::done;
}

HeadParser::Step HeadParser::handle_rare_header(std::string_view name, std::string_view value,
                                                MessageHead& head) noexcept {
  MessageHead::HeadInfo& info = head.info_;
  ParseError error = ParseError::none;
  switch (name.size()) {
    case 6:
      if (!is_name(name, "expect") || info.version_minor == 0 || reads_responses_) break;
      if (const Expectation expected = parse_expect(value); expected != Expectation::none) {
        info.expects_continue = true;
        info.expects_other |= expected == Expectation::other;
      }
      break;
    case 7:
      info.has_upgrade |= is_name(name, "upgrade");
      break;
    case 10:
      if (!is_name(name, "connection")) break;
      if (ConnectionOptions options;
          (error = parse_connection(value, options)) == ParseError::none) {
        info.close |= options.close;
        info.keep_alive |= options.keep_alive;
        info.upgrade |= options.upgrade;
      }
      break;
    case 14:
      if (!is_name(name, "content-length")) break;
      if (info.has_content_length) return fail_with(ParseError::repeated_content_length);
      info.has_content_length = true;
      error = parse_content_length(value, info.content_length);
      break;
    case 17:
      if (!is_name(name, "transfer-encoding")) break;
      if (info.chunked) return fail_with(ParseError::repeated_transfer_encoding);
      info.chunked = true;
      error = info.version_minor == 0 ? ParseError::unexpected_transfer_encoding
                                      : check_transfer_encoding(value);
      break;
    default:
      break;
  }
  return error == ParseError::none ? Step::done : fail_with(error);
}

/// Checks the rules that need all headers.
HeadParser::Step HeadParser::finish(const MessageHead& head) noexcept {
  const MessageHead::HeadInfo& info = head.info_;
  if (info.chunked && info.has_content_length) return fail_with(ParseError::both_lengths);
  if (!info.has_host && info.version_minor > 0 && !reads_responses_) {
    return fail_with(ParseError::missing_host);
  }
  if (info.expects_other) return fail_with(ParseError::unknown_expectation);
  return Step::complete;
}

}  // namespace weir::http
