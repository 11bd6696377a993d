// Constraints that stand in a type: a number in a range, a text of a length, a pattern, one of
// some.
//
//     struct Note {
//       Checked<std::string, rule::Length<1, 200>> text;
//       Checked<int, rule::Range<1, 5>> stars = 3;
//       Checked<std::string, rule::Pattern<"[a-z]+">> tag;
//       std::optional<Checked<std::string, rule::OneOf<"red", "green">>> color;
//     };
//
// JSON bodies, queries, forms, headers, cookies and configurations read these types, and report a
// value that breaks a rule in the same words.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/detail/constant_text.hpp"
#include "weir/json/codec.hpp"
#include "weir/json/detail/text_value.hpp"

namespace weir {

/// A Checked is a T that satisfies all rules if it was read. A value that the program itself gives
/// to it, such as a default, is not checked. A rule is a class with two static functions, and a
/// program may write its own. `bool holds(const T&)` decides, and `std::string text<T>()` returns
/// the words that follow the name of the type in messages.
template <class T, class... Rules>
class Checked {
 public:
  using Value = T;

  constexpr Checked() = default;
  constexpr Checked(T value) noexcept(std::is_nothrow_move_constructible_v<T>)
      : value_(std::move(value)) {}
  template <class U>
    requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Checked> &&
             !std::same_as<std::remove_cvref_t<U>, T>)
  constexpr Checked(U&& value) : value_(std::forward<U>(value)) {}

  constexpr const T& operator*() const noexcept { return value_; }
  constexpr const T* operator->() const noexcept { return &value_; }
  constexpr operator const T&() const noexcept { return value_; }
  // Not defaulted: GCC 12 instantiates a defaulted operator together with the class, and the
  // elements of a container need not have one.
  constexpr bool operator==(const Checked& other) const
    requires requires(const T& value) { value == value; }
  {
    return value_ == other.value_;
  }
  template <class U>
    requires(!std::same_as<U, Checked> &&
             requires(const T& value, const U& other) {
               { value == other } -> std::convertible_to<bool>;
             })
  constexpr bool operator==(const U& other) const {
    return value_ == other;
  }

  /// Returns true if the value satisfies the rules.
  constexpr bool holds() const { return (true && ... && Rules::holds(value_)); }
  /// Returns the description of the values that fit, such as `an integer from 1 to 5`.
  static std::string expected() {
    std::string words(json::detail::noun<T>());
    ((words.append(" ").append(Rules::template text<T>())), ...);
    return words;
  }

 private:
  friend struct json::Codec<Checked>;
  friend struct json::detail::TextValue<Checked>;

  T value_{};
};

namespace detail {

/// Returns the number of characters of a text; nullopt if it is not valid UTF-8.
std::optional<std::size_t> count_characters(std::string_view text) noexcept;
/// A regular expression of RE2, compiled.
class CompiledPattern {
 public:
  /// Throws std::invalid_argument if RE2 rejects the expression.
  explicit CompiledPattern(std::string_view expression);
  CompiledPattern(const CompiledPattern&) = delete;
  CompiledPattern& operator=(const CompiledPattern&) = delete;
  ~CompiledPattern();
  /// Returns true if the expression matches the whole text.
  bool matches(std::string_view text) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

/// Returns a number in its shortest form.
template <class Number>
std::string number_text(Number number) {
  if constexpr (std::integral<Number>) {
    return std::to_string(number);
  } else {
    std::array<char, 64> room;
    return std::string(room.data(), std::to_chars(room.data(), room.data() + 64, number).ptr);
  }
}

}  // namespace detail

namespace rule {

/// A number from Min to Max. For a duration, both are numbers of its ticks:
/// `Checked<std::chrono::seconds, rule::Range<1, 60>>` takes 1s to 1min.
template <auto Min, auto Max>
struct Range {
  static_assert(Min <= Max);
  template <class T>
  static constexpr bool holds(const T& value) noexcept {
    if constexpr (std::integral<T> && std::integral<decltype(Min)> &&
                  std::integral<decltype(Max)>) {
      constexpr bool type_has_both = static_cast<decltype(Min)>(static_cast<T>(Min)) == Min &&
                                     static_cast<decltype(Max)>(static_cast<T>(Max)) == Max &&
                                     (static_cast<T>(Min) < T{}) == (Min < decltype(Min){}) &&
                                     (static_cast<T>(Max) < T{}) == (Max < decltype(Max){});
      static_assert(type_has_both, "weir::rule::Range: the type does not have these values");
    }
    return !(value < static_cast<T>(Min)) && !(static_cast<T>(Max) < value);
  }
  template <class T>
  static std::string text() {
    if constexpr (json::detail::is_duration<T>) {
      using Text = json::detail::TextValue<T>;
      return "from " + Text::write(T(Min)) + " to " + Text::write(T(Max));
    } else {
      return "from " + weir::detail::number_text(Min) + " to " + weir::detail::number_text(Max);
    }
  }
};

/// A text of Min to Max characters (code points, not bytes), or a container of that many elements.
/// A text that is not valid UTF-8 does not fit.
template <std::size_t Min, std::size_t Max>
struct Length {
  static_assert(Min <= Max);
  template <class T>
  static constexpr bool holds(const T& value) noexcept {
    if constexpr (std::convertible_to<const T&, std::string_view>) {
      const std::optional<std::size_t> count = weir::detail::count_characters(value);
      return count && *count >= Min && *count <= Max;
    } else {
      return value.size() >= Min && value.size() <= Max;
    }
  }
  template <class T>
  static std::string text() {
    constexpr bool is_text = std::convertible_to<const T&, std::string_view>;
    return "of " + std::to_string(Min) + " to " + std::to_string(Max) +
           (is_text ? " characters" : " elements");
  }
};

/// A text that the regular expression (RE2) matches as a whole. The first use of an expression that
/// RE2 rejects throws std::invalid_argument.
template <ConstantText Expression>
struct Pattern {
  static bool holds(std::string_view text) {
    static const weir::detail::CompiledPattern pattern(Expression.view());
    return pattern.matches(text);
  }
  template <class T>
  static std::string text() {
    return "that matches " + std::string(Expression.view());
  }
};

/// One of some texts.
template <ConstantText... Texts>
struct OneOf {
  static constexpr bool holds(std::string_view text) noexcept {
    return (false || ... || (text == Texts.view()));
  }
  template <class T>
  static std::string text() {
    std::string words("that is ");
    std::size_t index = 0;
    (json::detail::append_expected_name(words, Texts.view(), index++, sizeof...(Texts)), ...);
    return words;
  }
};

}  // namespace rule
}  // namespace weir

/// A Checked has the form of its T in JSON.
template <class T, class... Rules>
struct weir::json::Codec<weir::Checked<T, Rules...>> {
  static constexpr Kinds kinds = detail::kinds_for<T>();
  static bool read(Reader& in, Checked<T, Rules...>& checked) {
    static_cast<void>(in.kind());  // skips blanks
    const Reader::Mark mark = in.mark();
    if (!Codec<T>::read(in, checked.value_)) return false;
    return checked.holds() || in.fail_rule(mark, checked.expected());
  }
  static void write(Writer& out, const Checked<T, Rules...>& checked) {
    Codec<T>::write(out, *checked);
  }
};

template <class T, class... Rules>
  requires(weir::json::detail::HasTextValue<T>)
struct weir::json::detail::TextValue<weir::Checked<T, Rules...>> {
  static bool read(std::string_view text, Checked<T, Rules...>& checked) {
    Checked<T, Rules...> value;
    if (!TextValue<T>::read(text, value.value_) || !value.holds()) return false;
    checked = std::move(value);
    return true;
  }
  static std::string expected() { return Checked<T, Rules...>::expected(); }
};
