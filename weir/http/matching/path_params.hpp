// Path parameters: the texts that a route's pattern matched, and their conversion to C++ types.
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

/// The text that `{name...}` matched: the raw remainder of the path, possibly empty. Decoding it
/// as a whole would hide which '/' were separators. The caller decodes its segments one by one:
/// `for (auto it = rest.begin(); it != rest.end(); ++it) use(it.decoded())`.
/// Lifetime: that of the request.
class Wildcard {
 public:
  explicit Wildcard(std::string_view raw) noexcept : raw_(raw) {}
  std::string_view raw() const noexcept { return raw_; }
  /// Returns the first segment. An empty remainder has one empty segment.
  Segments::Iterator begin() const noexcept { return Segments::Iterator(raw_); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::string_view raw_;
};

/// The texts that a pattern matched, in the order of the pattern. All are decoded except
/// Wildcard.
class PathParams {
 public:
  PathParams() noexcept {}  // NOLINT: texts_ stays uninitialized, on purpose

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

  /// Moves all views into `old_bytes` to the same offsets after `new_base`.
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
  std::array<Text, path_params_max> texts_;
  std::size_t size_ = 0;
};

/// Integer types that are numbers, not characters or bool.
template <class T>
concept PathParamInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                           !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                           !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// A type of the user that defines its own conversion from a path parameter.
template <class T>
concept CustomPathParam = requires(std::string_view text) {
  { T::from_path_param(text) } -> std::same_as<std::optional<T>>;
};

/// The types in which a handler may take a path parameter, by value or by const reference.
template <class T>
concept PathParamType = CustomPathParam<T> || PathParamInteger<T> || std::same_as<T, float> ||
                        std::same_as<T, double> || std::same_as<T, std::string_view> ||
                        std::same_as<T, std::string> || std::same_as<T, Wildcard>;

/// Converts the whole of `text` to a T. Numbers are decimal, finite and in range, without '+' or
/// blanks.
/// Returns: std::nullopt if the text does not fit the type.
template <PathParamType T>
std::optional<T> path_param_as(std::string_view text) {
  if constexpr (CustomPathParam<T>) {
    return T::from_path_param(text);
  } else if constexpr (PathParamInteger<T> || std::floating_point<T>) {
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
