// The head of most answers: 200, a media type, its body's length, a connection that stays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/message/detail/date.hpp"

namespace weir::http {

/// Writes the same bytes as write_head() does for such an answer, with one copy: what stands before
/// the length is the same for one answer after the other, as long as the date and the media type
/// are. Threads: one at a time.
class UsualHead {
  static constexpr std::size_t start_max = 128;

 public:
  /// Longer media types, with their line's other bytes, are too rare to be here.
  static constexpr std::size_t type_size_max = 42;
  /// Room that write() needs.
  static constexpr std::size_t size_max = start_max + 24;

  /// Whether write() is for a media type, by its address: it stands in the program.
  bool is_for(std::string_view content_type) const noexcept {
    return type_ == content_type.data() && type_size_ == content_type.size();
  }
  /// From now on, write() is for these; an empty type leaves the field out.
  void begin(const Date& date, std::string_view content_type) noexcept;

  /// Returns the end of what was written to `out`.
  char* write(std::uint64_t content_length, char* out) const noexcept;

 private:
  std::array<char, start_max> start_{};
  std::size_t start_size_ = 0;
  const char* type_ = nullptr;
  std::size_t type_size_ = type_size_max + 1;  // for none yet
};

}  // namespace weir::http
