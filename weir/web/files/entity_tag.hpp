// Entity tags, which tell two versions of a resource apart, and their comparison (RFC 9110 §8.8.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

/// The two comparisons of entity tags. A weak tag never matches strongly.
enum class TagComparison : std::uint8_t { strong, weak };

/// An EntityTag is a view of the tag of one version of a resource.
/// Lifetime: that of the text from which it was parsed.
struct EntityTag {
  std::string_view opaque;  ///< the opaque tag with its quotes
  bool weak = false;        ///< true for W/"..."

  /// Parses one tag, such as `"a1"` or `W/"a1"`.
  /// Returns: nullopt for any other text.
  static std::optional<EntityTag> parse(std::string_view text) noexcept;

  bool matches(const EntityTag& other, TagComparison how) const noexcept {
    if (how == TagComparison::strong && (weak || other.weak)) return false;
    return opaque == other.opaque;
  }
};

/// Returns a strong entity tag of these bytes, with its quotes. It is the same in all processes and
/// on all machines with this order of bytes. Clients that choose the bytes can make two contents
/// with one tag, since it is no cryptographic hash.
std::string entity_tag_of(std::string_view content);

/// Returns true if `list`, the value of If-Match or If-None-Match without "*", has a tag that
/// matches `tag`. It stops at the first member that is no tag.
bool contains_tag(std::string_view list, const EntityTag& tag, TagComparison how) noexcept;

}  // namespace weir::http
