// The shape that a C++ type has in JSON.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/json/detail/reader.hpp"

namespace weir::json {

/// A Named gives an enumerator a name in JSON.
template <class E>
struct Named {
  E value;
  std::string_view name;
};

/// The enumerators of E and their names in JSON; if there are none, an E is an integer. If there
/// are names, only these are read, and a value without a name is written as an integer. Specialise
/// it after the enum, for example:
///
///   template <>
///   inline constexpr std::array weir::json::enumerators<Color>{
///       weir::json::Named{Color::red, "red"}, weir::json::Named{Color::blue, "blue"}};
template <class E>
inline constexpr std::array<Named<E>, 0> enumerators{};

namespace detail {

enum class Shape : std::uint8_t {
  none,  ///< no form in JSON
  boolean,
  integer,
  real,
  text,
  view,  ///< string that is written but never read
  number_enumeration,
  named_enumeration,
  text_value,  ///< string that TextValue reads and writes: a duration, a time or a path
  nothing,     ///< null
  optional,    ///< null or a value
  pointer,     ///< null or a value on the heap
  sequence,
  set,
  array,  ///< array of a fixed length
  tuple,
  map,
  variant,
  object,
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<std::unique_ptr<T>> = !std::is_array_v<T>;
/// True for durations of whole ticks that are a whole number of nanoseconds.
template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> =
    Integer<Rep> && std::ratio_divide<Period, std::nano>::den == 1;
/// True for times of the system clock, which are in UTC.
template <class T>
inline constexpr bool is_time = false;
template <class D>
inline constexpr bool is_time<std::chrono::time_point<std::chrono::system_clock, D>> =
    is_duration<D> && std::is_signed_v<typename D::rep>;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// A PathLike is a std::filesystem::path, whose header most programs do not need: a range of paths
/// that is made from a string.
template <class T>
concept PathLike = requires(const T& path) {
  { path.native() } -> std::same_as<const std::string&>;
  { *path.begin() } -> std::convertible_to<const T&>;
  requires std::constructible_from<T, std::string>;
};
template <class T>
concept MapLike = requires(T& map, typename T::key_type key) {
  typename T::mapped_type;
  map.try_emplace(std::move(key));
  map.clear();
};
template <class T>
concept SetLike = requires(T& set, typename T::key_type key) {
  requires std::is_same_v<typename T::key_type, typename T::value_type>;
  set.insert(std::move(key)).second;
  set.clear();
};
template <class T>
concept SequenceLike = requires(T& sequence) {
  sequence.emplace_back();
  sequence.back();
  sequence.clear();
  sequence.begin() != sequence.end();
};

template <class T>
consteval Shape shape_of_class() {
  if constexpr (is_optional<T>) {
    return Shape::optional;
  } else if constexpr (is_pointer<T>) {
    return Shape::pointer;
  } else if constexpr (is_variant<T>) {
    return Shape::variant;
  } else if constexpr (is_array<T>) {
    return Shape::array;
  } else if constexpr (is_tuple<T>) {
    return Shape::tuple;
  } else if constexpr (is_duration<T> || is_time<T> || PathLike<T>) {
    return Shape::text_value;
  } else if constexpr (MapLike<T>) {
    return Shape::map;
  } else if constexpr (SetLike<T>) {
    return Shape::set;
  } else if constexpr (SequenceLike<T>) {
    return Shape::sequence;
  } else {
    return std::is_aggregate_v<T> ? Shape::object : Shape::none;
  }
}

template <class T>
consteval Shape shape_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return Shape::boolean;
  } else if constexpr (Integer<T>) {
    return Shape::integer;
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return Shape::real;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Shape::text;
  } else if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*>) {
    return Shape::view;
  } else if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, std::nullptr_t>) {
    return Shape::nothing;
  } else if constexpr (std::is_enum_v<T>) {
    return enumerators<T>.empty() ? Shape::number_enumeration : Shape::named_enumeration;
  } else if constexpr (std::is_class_v<T>) {
    return shape_of_class<T>();
  } else {
    return Shape::none;
  }
}

}  // namespace detail

/// True if a T is an array or an object in JSON, or a choice of these: structs, containers,
/// tuples and variants.
template <class T>
inline constexpr bool is_composite = detail::shape_of<T>() >= detail::Shape::sequence;

}  // namespace weir::json
