// The Types of structs, whose fields the reflection of weir/json lists, and the help texts of
// fields.
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

/// The help text of a field.
struct FieldHelp {
  std::string_view field;  ///< The field's name in the struct.
  std::string_view text;
};

/// The help texts of the fields of T. An example, which stands after the struct:
///
///     template <>
///     inline constexpr std::array weir::config::field_help<Server>{
///         weir::config::FieldHelp{"listen", "address to listen on"}};
template <class T>
inline constexpr std::array<FieldHelp, 0> field_help{};

namespace detail {

template <class T>
consteval std::string_view help_of(std::string_view declared) {
  for (const FieldHelp& entry : field_help<T>) {
    if (entry.field == declared) return entry.text;
  }
  return {};
}

template <class T>
consteval bool field_help_is_valid() {
  const auto declared = json::detail::declared_names<T>();
  return std::ranges::all_of(field_help<T>, [&](const FieldHelp& each) {
    return std::ranges::find(declared, each.field) != declared.end();
  });
}

template <class T>
consteval auto fields_of() {
  return json::detail::with_fields(json::detail::field_probe<T>.value, [](auto&... members) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      constexpr auto declared = json::detail::declared_names<T>();
      return std::array<Field, sizeof...(I)>{
          Field{json::detail::names<T>[I], help_of<T>(declared[I]),
                &type_of<std::remove_cvref_t<decltype(members)>>}...};
    }(std::make_index_sequence<sizeof...(members)>());
  });
}

template <class T>
class SectionOf final : public SectionType {
  static_assert(json::detail::check_struct<T>() && json::detail::check_names<T>());
  static_assert(field_help_is_valid<T>(),
                "weir::config: field_help<T> names a field that T does not have");

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
