// Header fields: what a name and a value may hold, and the list of fields that a message sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::http {

/// One field; the views belong to whatever it was taken from.
struct Field {
  std::string_view name;
  std::string_view value;  ///< without white space at its ends
};

/// True if a message may carry this field: the name is a token, the value has no NUL, CR, LF or
/// other control character but HTAB (RFC 9110 §5.1, §5.5).
bool valid_field(std::string_view name, std::string_view value) noexcept;

/// The fields of a message in the order of adding, owned, kept as the very lines that go on the
/// wire. Names compare without case. A few short fields need no heap memory. Looking up is linear:
/// messages have few fields. Threads: one at a time.
class Fields {
 public:
  /// Bytes of lines that are held without heap memory.
  static constexpr std::size_t inline_capacity = 112;

  /// Walks the fields from first to last; any change to the list ends its validity.
  class Iterator {
   public:
    using value_type = Field;
    using difference_type = std::ptrdiff_t;

    Iterator() noexcept = default;
    explicit Iterator(std::string_view lines) noexcept : rest_(lines) {}
    Field operator*() const noexcept;
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept {
      return rest_.size() == other.rest_.size();
    }

   private:
    std::string_view rest_;
  };

  Fields() noexcept = default;
  Fields(const Fields& other);
  Fields(Fields&& other) noexcept;
  Fields& operator=(const Fields& other);
  Fields& operator=(Fields&& other) noexcept;
  ~Fields() { release(); }

  /// Adds a line behind the others, also if the name is there already. White space at the ends of
  /// the value is left out. Errors: bad_input where valid_field() is false; nothing is added then.
  Result<> add(std::string_view name, std::string_view value);

  /// Replaces every field of that name by one line, at the end of the list. Errors: as add().
  /// Neither `name` nor `value` may be a view into this list.
  Result<> set(std::string_view name, std::string_view value);

  /// Removes every field of that name and returns how many there were.
  std::size_t remove(std::string_view name) noexcept;

  /// The value of the first field of that name.
  std::optional<std::string_view> get(std::string_view name) const noexcept;

  bool contains(std::string_view name) const noexcept { return get(name).has_value(); }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t count() const noexcept;
  void clear() noexcept { size_ = 0; }

  /// Every field as "name: value" CRLF, one behind the other.
  std::string_view lines() const noexcept { return {data(), size_}; }

  Iterator begin() const noexcept { return Iterator(lines()); }
  Iterator end() const noexcept { return Iterator(); }

 private:
  const char* data() const noexcept { return heap_ != nullptr ? heap_ : inline_.data(); }
  char* data() noexcept { return heap_ != nullptr ? heap_ : inline_.data(); }
  char* extend(std::size_t bytes);
  void release() noexcept;
  void take(Fields& other) noexcept;

  char* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = inline_capacity;
  std::array<char, inline_capacity> inline_;
};

}  // namespace weir::http
