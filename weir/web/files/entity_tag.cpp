#include "weir/web/files/entity_tag.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/text/detail/hash.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// Removes the tag at the start of `text`, and returns it.
std::optional<EntityTag> take_tag(std::string_view& text) noexcept {
  EntityTag tag;
  std::string_view rest = text;
  if (rest.starts_with("W/")) {
    tag.weak = true;
    rest.remove_prefix(2);
  }
  if (!rest.starts_with('"')) return std::nullopt;
  const std::size_t end = rest.find('"', 1);
  if (end == rest.npos) return std::nullopt;
  tag.opaque = rest.substr(0, end + 1);
  for (const char each : tag.opaque) {  // etagc: VCHAR without '"', and obs-text
    const auto code = static_cast<unsigned char>(each);
    if (code < 0x21 || code == 0x7f) return std::nullopt;
  }
  text = rest.substr(end + 1);
  return tag;
}

void append_hex(std::string& out, std::uint64_t value) {
  std::array<char, 16> digits;
  digits.fill('0');
  for (auto at = digits.rbegin(); value != 0; ++at, value >>= 4) {
    *at = "0123456789abcdef"[value & 15];
  }
  out.append(digits.data(), digits.size());
}

}  // namespace

std::optional<EntityTag> EntityTag::parse(std::string_view text) noexcept {
  const auto tag = take_tag(text);
  return text.empty() ? tag : std::nullopt;
}

std::string entity_tag_of(std::string_view content) {
  constexpr std::uint64_t seed = 0;  // all machines of a service send the same tags
  const Hash128 hash = hash_bytes(content, seed);
  std::string tag = "\"";
  append_hex(tag, hash.high);
  append_hex(tag, hash.low);
  return tag += '"';
}

bool contains_tag(std::string_view list, const EntityTag& tag, TagComparison how) noexcept {
  for (;;) {
    while (!list.empty() && (is_space(list.front()) || list.front() == ',')) list.remove_prefix(1);
    const auto member = take_tag(list);
    if (!member) return false;
    const std::string_view rest = trim(list);
    if (!rest.empty() && rest.front() != ',') return false;
    if (member->matches(tag, how)) return true;
  }
}

}  // namespace weir::http
