// The codec of variants, which selects the alternative by the form of the JSON value.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/json/codec.hpp"
#include "weir/json/detail/codec_object.hpp"

namespace weir::json::detail {

template <class... T>
struct Alternatives {
  static constexpr std::array<Kinds, sizeof...(T)> kinds{kinds_for<T>()...};
  static constexpr std::array<Shape, sizeof...(T)> shapes{shape_of<T>()...};
  static constexpr std::size_t none = sizeof...(T);

  /// Returns true if alternatives `a` and `b` can be distinguished. Two alternatives of one kind
  /// must be two structs, or an integer and a floating-point number.
  static constexpr bool distinct(std::size_t a, std::size_t b) {
    const Kinds both = kinds[a] & kinds[b];
    if (both == 0) return true;
    if (both == kinds_of(Kind::object)) {
      return shapes[a] == Shape::object && shapes[b] == Shape::object;
    }
    return both == kinds_of(Kind::number) &&
           (shapes[a] == Shape::real) != (shapes[b] == Shape::real);
  }
  static constexpr bool all_distinct() {
    for (std::size_t a = 0; a < sizeof...(T); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (!distinct(a, b)) return false;
      }
    }
    return true;
  }

  /// Returns the first alternative for `kind`. A floating-point alternative is returned only if
  /// `real` is true or there is no other.
  static constexpr std::size_t find(Kind kind, bool real) {
    std::size_t found = none;
    for (std::size_t index = 0; index < sizeof...(T); ++index) {
      if ((kinds[index] & kinds_of(kind)) == 0) continue;
      if (found == none || (shapes[index] == Shape::real) == real) found = index;
    }
    return found;
  }

  static constexpr std::size_t object_count =
      (0 + ... + (shape_of<T>() == Shape::object ? 1U : 0U));
  static constexpr std::size_t number_count =
      (0 + ... + ((kinds_for<T>() & kinds_of(Kind::number)) != 0 ? 1U : 0U));
  static_assert(object_count <= 16, "weir::json: a variant has at most 16 structs");
};

template <class... T>
struct CodecOf<std::variant<T...>, Shape::variant> {
  using Value = std::variant<T...>;
  using All = Alternatives<T...>;
  static_assert(All::all_distinct(),
                "weir::json: two alternatives of a variant have the same kind of JSON value: only "
                "structs may repeat, and an integer may stand next to a double");
  static constexpr Kinds kinds = static_cast<Kinds>((0U | ... | kinds_for<T>()));

  static bool read(Reader& in, Value& value) {
    const std::size_t index = choose(in);
    if (index == All::none) return in.ok() ? fail_expected_kinds(in, kinds) : false;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (false || ... || (index == I && Codec<T>::read(in, value.template emplace<I>())));
    }(std::index_sequence_for<T...>());
  }

  static void write(Writer& out, const Value& value) {
    if (value.valueless_by_exception()) return out.put(std::string_view("null"));
    std::visit([&out]<class A>(const A& held) { Codec<A>::write(out, held); }, value);
  }

 private:
  static std::size_t choose(Reader& in) {
    const Kind kind = in.kind();
    if constexpr (All::object_count > 1) {
      if (kind == Kind::object) return choose_struct(in);
    }
    if constexpr (All::number_count > 1) {
      if (kind == Kind::number) return All::find(kind, !in.at_integer());
    }
    return kind == Kind::other ? All::none : All::find(kind, false);
  }

  static std::size_t choose_struct(Reader& in) {
    std::array<FieldTable, All::object_count> tables;
    std::array<std::size_t, All::object_count> indices{};
    std::size_t count = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add_table<I, T>(tables, indices, count), ...);
    }(std::index_sequence_for<T...>());
    const std::size_t chosen = in.choose(tables);
    return chosen == count ? All::none : indices[chosen];
  }
  template <std::size_t I, class A>
  static void add_table(auto& tables, auto& indices, std::size_t& count) {
    if constexpr (shape_of<A>() == Shape::object) {
      tables[count] = field_table_without_defaults<A>();
      indices[count++] = I;
    }
  }
};

}  // namespace weir::json::detail
