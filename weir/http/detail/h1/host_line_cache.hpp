// The Host line that clients of one core say again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::http {

/// The last Host line that was found good. A line with the very same bytes need not be judged
/// again, whoever sends it: what a line means depends on its bytes alone. Threads: one at a time.
class KnownHost {
 public:
  /// Lines up to this long are remembered.
  static constexpr std::size_t line_max = 64;

  /// True if `text` begins with the line.
  [[gnu::always_inline]] bool begins(std::string_view text) const noexcept {
    using Word = std::uint64_t;
    if (line_size_ == 0 || text.size() < line_size_) return false;
    const auto same_at = [&](std::size_t offset) {
      Word here;
      Word known;
      std::memcpy(&here, text.data() + offset, sizeof(Word));
      std::memcpy(&known, line_.data() + offset, sizeof(Word));
      return here == known;
    };
    const std::size_t last = line_size_ - sizeof(Word);
    for (std::size_t offset = 0; offset < last; offset += sizeof(Word)) {
      if (!same_at(offset)) return false;
    }
    return same_at(last);
  }

  /// Remembers a line with its CRLF; `name`, at its start, and `value` are parts of it.
  void remember(std::string_view line, std::string_view name, std::string_view value) noexcept {
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
