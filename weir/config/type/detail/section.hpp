// The Types of structs: their fields by the reflection that weir/json has, and notes on them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/config/type/detail/type.hpp"
#include "weir/json/detail/field_names.hpp"
#include "weir/json/detail/fields.hpp"

namespace weir::config {

/// What the help says of a field.
struct Note {
  std::string_view field;  ///< as in the struct
  std::string_view text;
};

/// The notes on the fields of T. For example, after the struct:
///
///   template <>
///   inline constexpr std::array weir::config::notes<Server>{
///       weir::config::Note{"listen", "where to wait for connections"}};
template <class T>
inline constexpr std::array<Note, 0> notes{};

namespace detail {

template <class T>
consteval std::string_view note_of(std::string_view declared) {
  for (const Note& note : notes<T>) {
    if (note.field == declared) return note.text;
  }
  return {};
}

template <class T>
consteval bool notes_are_of_fields() {
  const auto declared = json::detail::declared_names<T>();
  return std::ranges::all_of(notes<T>, [&](const Note& each) {
    return std::ranges::find(declared, each.field) != declared.end();
  });
}

template <class T>
consteval auto fields_of() {
  return json::detail::with_fields(json::detail::place<T>.value, [](auto&... members) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      constexpr auto declared = json::detail::declared_names<T>();
      return std::array<Field, sizeof...(I)>{
          Field{json::detail::names<T>[I], note_of<T>(declared[I]),
                &type_of<std::remove_cvref_t<decltype(members)>>}...};
    }(std::make_index_sequence<sizeof...(members)>());
  });
}

template <class T>
class SectionOf final : public SectionType {
  static_assert(json::detail::check_struct<T>() && json::detail::check_names<T>());
  static_assert(notes_are_of_fields<T>(), "weir::config: notes<T> speaks of a field T has not");

 public:
  std::span<const Field> fields() const noexcept override { return all; }
  void* member(void* section, std::size_t index) const noexcept override {
    return json::detail::with_fields(*static_cast<T*>(section), [index](auto&... members) {
      const std::array<void*, sizeof...(members)> addresses{std::addressof(members)...};
      return addresses[index];
    });
  }

 private:
  static constexpr auto all = fields_of<T>();
};

}  // namespace detail
}  // namespace weir::config
