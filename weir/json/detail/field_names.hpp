// The names of a struct's fields in JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/json/detail/fields.hpp"

namespace weir::json {

/// A Rename gives a field another name in JSON.
struct Rename {
  std::string_view field;  ///< name in the struct
  std::string_view name;   ///< name in JSON
};

/// The fields of T whose names in JSON differ from those in C++. The specialisation stands after
/// the struct, for example:
///
///   template <>
///   inline constexpr std::array weir::json::renames<Head>{
///       weir::json::Rename{"content_type", "content-type"}};
///
/// A keyword of C++ needs no rename: JSON leaves out one underscore at the end of a field's name,
/// so `class_` is "class".
template <class T>
inline constexpr std::array<Rename, 0> renames{};

namespace detail {

/// A FieldProbe is room for an object that is never made; only the addresses of its fields are
/// used.
template <class T>
union FieldProbe {
  constexpr FieldProbe() noexcept : none() {}
  constexpr ~FieldProbe() {}
  char none;
  T value;
};
template <class T>
inline constexpr FieldProbe<T> field_probe{};

template <std::size_t Index, class P>
struct FieldPointer {
  P pointer;
};
template <class... P>
struct FieldPointers : P... {};

template <std::size_t Index, class P>
constexpr P pointer_at(const FieldPointer<Index, P>& field) noexcept {
  return field.pointer;
}

template <class T>
constexpr auto field_pointers() {
  return with_fields(field_probe<T>.value, [](auto&... fields) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return FieldPointers<FieldPointer<I, decltype(std::addressof(fields))>...>{
          {std::addressof(fields)}...};
    }(std::make_index_sequence<sizeof...(fields)>());
  });
}

/// Returns true if `check` returns true for each field of T. It is called with the type of a field
/// and its pointer as template arguments, so the message of a static_assert names the field.
template <class T, class Check>
consteval bool check_fields(Check check) {
  return with_fields(field_probe<T>.value, [check]<class... Field>(Field&...) {
    return [check]<std::size_t... I>(std::index_sequence<I...>) {
      return (true && ... &&
              check.template
              operator()<std::remove_const_t<Field>, pointer_at<I>(field_pointers<T>())>());
    }(std::make_index_sequence<sizeof...(Field)>());
  });
}

/// Returns a text that ends with the name of the field after a dot or colon, and at most two
/// brackets.
template <auto Pointer>
consteval const char* text_with_name() {
  return __PRETTY_FUNCTION__;
}

/// Returns the last identifier in the compiler's text for a pointer. clang writes
/// `... [Pointer = &field_probe.value.sequence]`. GCC writes
/// `... (& field_probe<Ping>.FieldProbe<Ping>::value.Ping::sequence)]`.
consteval std::string_view last_identifier(std::string_view text) {
  const auto belongs = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '_' || each == '$' ||
           static_cast<unsigned char>(each) >= 0x80;
  };
  while (!text.empty() && !belongs(text.back())) text.remove_suffix(1);
  std::size_t start = text.size();
  while (start > 0 && belongs(text[start - 1])) --start;
  return text.substr(start);
}

template <class T, std::size_t Index>
consteval std::string_view declared_name() {
  return last_identifier(text_with_name<pointer_at<Index>(field_pointers<T>())>());
}

template <class T>
constexpr std::string_view json_name(std::string_view declared) {
  for (const Rename& rename : renames<T>) {
    if (rename.field == declared) return rename.name;
  }
  if (declared.size() > 1 && declared.ends_with('_')) declared.remove_suffix(1);
  return declared;
}

template <class T>
consteval auto declared_names() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{declared_name<T, I>()...};
  }(std::make_index_sequence<field_count<T>>());
}

/// The names of T's fields in JSON, in the order of declaration.
template <class T>
inline constexpr auto names = [] {
  auto all = declared_names<T>();
  for (auto& each : all) each = json_name<T>(each);
  return all;
}();

template <class T>
consteval bool renames_are_of_fields() {
  const auto declared = declared_names<T>();
  return std::all_of(renames<T>.begin(), renames<T>.end(), [&](const Rename& each) {
    return std::find(declared.begin(), declared.end(), each.field) != declared.end();
  });
}

template <class T>
consteval bool names_are_distinct() {
  for (auto each = names<T>.begin(); each != names<T>.end(); ++each) {
    if (std::find(names<T>.begin(), each, *each) != each) return false;
  }
  return true;
}

/// Returns true if the names need no escapes between quotes.
template <class T>
consteval bool names_are_plain() {
  for (const std::string_view name : names<T>) {
    for (const char each : name) {
      const auto code = static_cast<unsigned char>(each);
      if (code < 0x20 || each == '"' || each == '\\') return false;
    }
  }
  return true;
}

template <class T>
consteval bool check_names() {
  static_assert(renames_are_of_fields<T>(),
                "weir::json: renames<T> names a field that T does not have");
  static_assert(names_are_distinct<T>(), "weir::json: two fields of T have the same name in JSON");
  static_assert(names_are_plain<T>(),
                "weir::json: a name in JSON has no quotes, backslashes or control characters");
  return renames_are_of_fields<T>() && names_are_distinct<T>() && names_are_plain<T>();
}

/// The token `"name":`, with the characters `Before` in front.
template <class T, std::size_t Index, char... Before>
inline constexpr auto key_token = [] {
  constexpr std::string_view name = names<T>[Index];
  std::array<char, sizeof...(Before) + name.size() + 3> token{Before...};
  std::size_t end = sizeof...(Before);
  token[end++] = '"';
  for (const char each : name) token[end++] = each;
  token[end++] = '"';
  token[end] = ':';
  return token;
}();

}  // namespace detail
}  // namespace weir::json
