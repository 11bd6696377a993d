// What a route's pattern caught of a path, and how a handler gets it: typed by its signature.
#pragma once

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/http/matching/detail/pattern_text.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {

/// What `{name...}` caught: the raw remainder of the path, possibly empty. Decoding it as a whole
/// would hide which '/' were separators, so its segments are decoded one by one:
/// `for (auto it = rest.begin(); it != rest.end(); ++it) use(it.decoded())`.
/// Lifetime: the request's.
class Rest {
 public:
  explicit Rest(std::string_view raw) noexcept : raw_(raw) {}
  std::string_view raw() const noexcept { return raw_; }
  /// The segments, "" of an empty remainder among them.
  Segments::Iterator begin() const noexcept { return Segments::Iterator(raw_); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::string_view raw_;
};

/// The texts that were caught, in the order of the pattern; decoded, but for Rest.
class Captures {
 public:
  Captures() noexcept {}  // NOLINT: texts_ is left as it is, on purpose

  std::size_t size() const noexcept { return size_; }
  std::string_view operator[](std::size_t index) const noexcept {
    assert(index < size_);
    return {texts_[index].data, texts_[index].size};
  }
  void clear() noexcept { size_ = 0; }
  void add(std::string_view text) noexcept {
    assert(size_ < texts_.size());
    texts_[size_++] = {text.data(), text.size()};
  }

  /// The texts that stood in `old_bytes` now stand at the same place behind `new_base`.
  void rebase(std::string_view old_bytes, const char* new_base) noexcept {
    const std::less<const char*> before;
    const char* const end = old_bytes.data() + old_bytes.size();
    for (std::size_t index = 0; index < size_; ++index) {
      const char*& data = texts_[index].data;
      if (before(data, old_bytes.data()) || !before(data, end)) continue;
      data = new_base + (data - old_bytes.data());
    }
  }

 private:
  struct Text {
    const char* data;
    std::size_t size;
  };
  std::array<Text, pattern_captures_max> texts_;
  std::size_t size_ = 0;
};

/// Integers that stand for numbers, not for characters or truth.
template <class T>
concept CaptureInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                         !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                         !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// A type of the user's that says itself how it is read.
template <class T>
concept CustomCapture = requires(std::string_view text) {
  { T::from_capture(text) } -> std::same_as<std::optional<T>>;
};

/// What a handler may take a capture as, by value or by const reference.
template <class T>
concept CaptureType =
    CustomCapture<T> || CaptureInteger<T> || std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::string_view> || std::same_as<T, std::string> || std::same_as<T, Rest>;

/// `text` as a T: the whole of it, in range, numbers in decimal without '+' or blanks and finite;
/// nothing if it does not fit.
template <CaptureType T>
std::optional<T> capture_as(std::string_view text) {
  if constexpr (CustomCapture<T>) {
    return T::from_capture(text);
  } else if constexpr (CaptureInteger<T> || std::floating_point<T>) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value)) return std::nullopt;
    }
    return value;
  } else {
    return T(text);
  }
}

}  // namespace weir::http
