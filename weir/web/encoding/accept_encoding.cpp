#include "weir/web/encoding/accept_encoding.hpp"

#include <optional>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

std::string_view take_until(std::string_view& text, char end) noexcept {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return trim(part);
}

/// Parses a qvalue (RFC 9110 §12.4.2) to thousandths.
std::optional<std::int16_t> parse_quality(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int quality = (text[0] - '0') * 1000;
  int unit = 100;
  for (const char digit : text.substr(text.size() > 1 ? 2 : 1)) {
    if (!is_in(digit, CharClass::digit)) return std::nullopt;
    quality += (digit - '0') * unit;
    unit /= 10;
  }
  if (quality > 1000) return std::nullopt;
  return static_cast<std::int16_t>(quality);
}

}  // namespace

AcceptEncoding::AcceptEncoding(const RequestHead& head) noexcept : AcceptEncoding() {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (equals_ignoring_case(header.name, "accept-encoding")) add(header.value);
  }
}

void AcceptEncoding::add(std::string_view value) noexcept {
  given_ = true;
  while (!value.empty()) {
    std::string_view member = take_until(value, ',');
    const std::string_view coding = take_until(member, ';');
    std::optional<std::int16_t> quality(std::int16_t{1000});
    if (!member.empty()) {
      const std::string_view name = take_until(member, '=');
      quality = equals_ignoring_case(name, "q") ? parse_quality(trim(member)) : std::nullopt;
    }
    if (!quality) continue;
    if (coding == "*") {
      any_ = *quality;
    } else if (const auto known = compression::coding_of(coding)) {
      qualities_[static_cast<std::size_t>(*known)] = *quality;
    }
  }
}

int AcceptEncoding::quality(ContentCoding coding) const noexcept {
  const std::int16_t own = qualities_[static_cast<std::size_t>(coding)];
  if (own != unset) return own;
  if (coding == ContentCoding::identity) return any_ == 0 ? 0 : 1;
  if (any_ != unset) return any_;
  return 0;
}

ContentCoding AcceptEncoding::choose(std::span<const ContentCoding> offered) const noexcept {
  ContentCoding best = ContentCoding::identity;
  if (!given_) return best;
  int best_quality = quality(best);
  bool is_default = true;  // an offered coding of the same quality comes first
  for (const ContentCoding each : offered) {
    const int its_quality = quality(each);
    if (its_quality == 0 || each == ContentCoding::identity) continue;
    if (its_quality > best_quality || (is_default && its_quality == best_quality)) {
      best = each;
      best_quality = its_quality;
      is_default = false;
    }
  }
  return best;
}

}  // namespace weir::http
