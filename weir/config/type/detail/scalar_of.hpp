// The Types of numbers, enums, durations, times and paths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/config/type/detail/scalar.hpp"
#include "weir/config/type/detail/type.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/json/detail/text_value.hpp"

namespace weir::config::detail {

template <class T>
class IntegerType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override {
    write_number(out, Wide{*static_cast<const T*>(value)});
  }
  std::string placeholder() const override { return "INTEGER"; }
  std::string expected() const override {
    if constexpr (std::is_signed_v<T>) {
      return json::detail::expected_signed(Limits::min(), Limits::max());
    } else {
      return json::detail::expected_unsigned(Limits::max());
    }
  }

 private:
  using Limits = std::numeric_limits<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;

  bool read(const RawValue& raw, void* value) const override {
    const auto number = [&raw] {
      if constexpr (std::is_signed_v<T>) {
        return read_signed(raw);
      } else {
        return read_unsigned(raw);
      }
    }();
    if (!number || !std::in_range<T>(*number)) return false;
    *static_cast<T*>(value) = static_cast<T>(*number);
    return true;
  }
};

template <class T>
class RealType final : public ValueType {
 public:
  void write(std::string& out, const void* value) const override {
    write_number(out, double{*static_cast<const T*>(value)});
  }
  std::string placeholder() const override { return "NUMBER"; }
  std::string expected() const override { return "a number"; }

 private:
  std::string expected_instead_of(const RawValue& raw) const override {
    return is_integer(raw) ? expected_exact(std::numeric_limits<T>::digits) : expected();
  }
  bool read(const RawValue& raw, void* value) const override {
    const auto number = read_real(raw);
    constexpr double most = std::numeric_limits<T>::max();
    if (!number || *number < -most || *number > most) return false;
    const auto nearest = static_cast<T>(*number);
    if (is_integer(raw) && double{nearest} != *number) return false;
    *static_cast<T*>(value) = nearest;
    return true;
  }
};

template <class E>
class EnumType final : public ValueType {
  static_assert(!json::enumerators<E>.empty(),
                "weir::config: an enum needs names: see json::enumerators");

 public:
  void write(std::string& out, const void* value) const override {
    for (const auto& each : json::enumerators<E>) {
      if (each.value == *static_cast<const E*>(value)) return write_text(out, each.name);
    }
    write_number(out, static_cast<std::int64_t>(*static_cast<const E*>(value)));
  }
  std::string placeholder() const override { return placeholder_of_names(names); }
  std::string expected() const override { return expected_names(names); }

 private:
  static constexpr auto names = [] {
    std::array<std::string_view, json::enumerators<E>.size()> all;
    for (std::size_t index = 0; index < all.size(); ++index) {
      all[index] = json::enumerators<E>[index].name;
    }
    return all;
  }();

  bool read(const RawValue& raw, void* value) const override {
    if (!raw.is_text()) return false;
    for (const auto& each : json::enumerators<E>) {
      if (each.name != raw.text) continue;
      *static_cast<E*>(value) = each.value;
      return true;
    }
    return false;
  }
};

/// A duration, a time or a path, which json::detail::TextValue reads and writes.
template <class T>
class TextValueType final : public ValueType {
  using Text = json::detail::TextValue<T>;

 public:
  void write(std::string& out, const void* value) const override {
    write_text(out, Text::write(*static_cast<const T*>(value)));
  }
  std::string placeholder() const override { return placeholder_of_noun(json::detail::noun<T>()); }
  std::string expected() const override { return Text::expected(); }

 private:
  static bool has_text(const RawValue& raw) noexcept {
    return raw.is_text() || (json::detail::is_time<T> && raw.kind == RawValue::Kind::date_time);
  }
  std::string expected_instead_of(const RawValue& raw) const override {
    return has_text(raw) ? json::detail::expected_instead_of<T>(raw.text) : expected();
  }
  bool read(const RawValue& raw, void* value) const override {
    return has_text(raw) && Text::read(raw.text, *static_cast<T*>(value));
  }
};

}  // namespace weir::config::detail
