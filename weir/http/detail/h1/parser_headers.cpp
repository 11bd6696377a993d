// What fields mean for the request: the parser's notes on those that frame it or choose its target.
#include <cstring>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"
#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/detail/h1/parser.hpp"

namespace weir::http {
namespace {

/// True if `name`, which is a token, is `lower` (letters and '-') in any letter case. Setting bit
/// 0x20 folds letters, and makes no other token character a letter or '-'.
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

std::string_view between(const char* start, const char* end) noexcept {
  return {start, static_cast<std::size_t>(end - start)};
}

/// True for the usual host with or without a usual port; what is false here is for
/// parse_authority() to decide. `base` is the input's first byte.
[[gnu::noinline]] bool is_plain_authority(const char* base, std::string_view value) noexcept {
  const char* const end = value.data() + value.size();
  const char* colon =
      find_stop(base, value.data(), end, [](const Block& block) { return block.not_plain_host(); });
  if (colon == value.data()) return false;
  if (colon == end) return true;
  const std::string_view port = between(colon + 1, end);
  constexpr std::string_view port_max = "65535";
  const bool in_range =
      port.size() < port_max.size() || (port.size() == port_max.size() && port <= port_max);
  return *colon == ':' && in_range && all_in(port, CharacterClass::digit);
}

}  // namespace

HeadParser::Step HeadParser::note_field(std::string_view name, std::string_view value,
                                        RequestHead& head) noexcept {
  if (name.size() == 4) return is_name(name, "host") ? note_host(value, head) : Step::done;
  return note_rare_field(name, value, head);
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::note_host(std::string_view value,
                                                                     RequestHead& head) noexcept {
  if (head.about_.has_host) return refuse(Refusal::repeated_host);
  if (!is_plain_authority(head.base_, value) && !parse_authority(value)) {
    return refuse(Refusal::bad_host);
  }
  head.about_.has_host = true;
  if (head.about_.authority.length == 0) head.about_.authority = head.slice_of(value);
  return Step::done;
}

HeadParser::Step HeadParser::note_rare_field(std::string_view name, std::string_view value,
                                             RequestHead& head) noexcept {
  RequestHead::About& about = head.about_;
  Refusal refusal = Refusal::none;
  switch (name.size()) {
    case 6:
      if (!is_name(name, "expect") || about.version_minor == 0) break;
      if (const Expectation expected = parse_expect(value); expected != Expectation::none) {
        about.expects_continue = true;
        about.expects_other |= expected == Expectation::other;
      }
      break;
    case 7:
      about.has_upgrade |= is_name(name, "upgrade");
      break;
    case 10:
      if (!is_name(name, "connection")) break;
      if (ConnectionOptions options;
          (refusal = parse_connection(value, options)) == Refusal::none) {
        about.close |= options.close;
        about.keep_alive |= options.keep_alive;
        about.upgrade |= options.upgrade;
      }
      break;
    case 14:
      if (!is_name(name, "content-length")) break;
      if (about.has_content_length) return refuse(Refusal::repeated_content_length);
      about.has_content_length = true;
      refusal = parse_content_length(value, about.content_length);
      break;
    case 17:
      if (!is_name(name, "transfer-encoding")) break;
      if (about.chunked) return refuse(Refusal::repeated_transfer_encoding);
      about.chunked = true;
      refusal = about.version_minor == 0 ? Refusal::unexpected_transfer_encoding
                                         : check_transfer_encoding(value);
      break;
    default:
      break;
  }
  return refusal == Refusal::none ? Step::done : refuse(refusal);
}

/// What can only be judged when all fields are known.
HeadParser::Step HeadParser::finish(const RequestHead& head) noexcept {
  const RequestHead::About& about = head.about_;
  if (about.chunked && about.has_content_length) return refuse(Refusal::both_lengths);
  if (!about.has_host && about.version_minor > 0) return refuse(Refusal::missing_host);
  if (about.expects_other) return refuse(Refusal::unknown_expectation);
  return Step::complete;
}

}  // namespace weir::http
