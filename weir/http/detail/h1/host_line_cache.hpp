// A cache of the last valid Host line of a core, since most clients of a core send the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::http {

/// The last Host line that was valid. A line with exactly the same bytes is valid again for any
/// client, because the validity of a line depends only on its bytes.
/// Threads: one at a time.
class HostLineCache {
 public:
  /// The maximum length of a stored line.
  static constexpr std::size_t line_max = 64;

  /// Returns true if `text` begins with the stored line.
  [[gnu::always_inline]] bool matches(std::string_view text) const noexcept {
    using Word = std::uint64_t;
    if (line_size_ == 0 || text.size() < line_size_) return false;
    const auto same_at = [&](std::size_t offset) {
      Word here;
      Word cached;
      std::memcpy(&here, text.data() + offset, sizeof(Word));
      std::memcpy(&cached, line_.data() + offset, sizeof(Word));
      return here == cached;
    };
    const std::size_t last = line_size_ - sizeof(Word);
    for (std::size_t offset = 0; offset < last; offset += sizeof(Word)) {
      if (!same_at(offset)) return false;
    }
    return same_at(last);
  }

  /// Stores a line with its CRLF. `name`, at its start, and `value` are views into the line. A
  /// line that is shorter than 8 bytes or longer than line_max is not stored.
  void store(std::string_view line, std::string_view name, std::string_view value) noexcept {
    if (line.size() < sizeof(std::uint64_t) || line.size() > line_max) return;
    std::memcpy(line_.data(), line.data(), line.size());
    line_size_ = static_cast<std::uint8_t>(line.size());
    name_size_ = static_cast<std::uint8_t>(name.size());
    value_offset_ = static_cast<std::uint8_t>(value.data() - line.data());
    value_size_ = static_cast<std::uint8_t>(value.size());
  }

  std::uint32_t line_size() const noexcept { return line_size_; }
  std::uint32_t name_size() const noexcept { return name_size_; }
  std::uint32_t value_offset() const noexcept { return value_offset_; }
  std::uint32_t value_size() const noexcept { return value_size_; }

 private:
  std::array<char, line_max> line_{};
  std::uint8_t line_size_ = 0;
  std::uint8_t name_size_ = 0;
  std::uint8_t value_offset_ = 0;
  std::uint8_t value_size_ = 0;
};

}  // namespace weir::http
