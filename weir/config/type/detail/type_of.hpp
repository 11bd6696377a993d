// Maps each configurable C++ type to its Type.
#pragma once

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/config/type/detail/container.hpp"
#include "weir/config/type/detail/scalar.hpp"
#include "weir/config/type/detail/scalar_of.hpp"
#include "weir/config/type/detail/section.hpp"
#include "weir/config/type/detail/type.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/json/text/units.hpp"
#include "weir/loop/contract/detail/platform.hpp"

/// The names of BackendChoice, which allow RuntimeOptions to be a section.
template <>
inline constexpr std::array weir::json::enumerators<weir::BackendChoice>{
    weir::json::Named{weir::BackendChoice::automatic, "auto"},
    weir::json::Named{weir::BackendChoice::uring, "uring"},
    weir::json::Named{weir::BackendChoice::uring_6_1, "uring:6.1"},
    weir::json::Named{weir::BackendChoice::epoll, "epoll"},
    weir::json::Named{weir::BackendChoice::poll, "poll"}};

namespace weir::config {
namespace detail {

template <class T>
struct TypeOf {
  static_assert(std::is_aggregate_v<T> && !std::is_array_v<T>,
                "weir::config: this type is neither a struct whose fields are all public, nor one "
                "of those that config.hpp names");
  using type = SectionOf<T>;
};
template <json::Integer T>
struct TypeOf<T> {
  using type = IntegerType<T>;
};
template <std::floating_point T>
  requires(sizeof(T) <= sizeof(double))
struct TypeOf<T> {
  using type = RealType<T>;
};
template <class T>
  requires std::is_enum_v<T>
struct TypeOf<T> {
  using type = EnumType<T>;
};
template <class T>
  requires(json::detail::shape_of<T>() == json::detail::Shape::text_value)
struct TypeOf<T> {
  using type = TextValueType<T>;
};
template <>
struct TypeOf<bool> {
  using type = BooleanType;
};
template <>
struct TypeOf<std::string> {
  using type = StringType;
};
template <>
struct TypeOf<ByteSize> {
  using type = ByteSizeType;
};
template <>
struct TypeOf<Endpoint> {
  using type = EndpointType;
};
template <class T, class... Rules>
struct TypeOf<Checked<T, Rules...>> {
  using type = CheckedOf<T, Rules...>;
};
template <class T>
struct TypeOf<std::optional<T>> {
  using type = OptionalOf<T>;
};
template <class T>
struct TypeOf<std::vector<T>> {
  using type = VectorOf<T>;
};
template <class T>
struct TypeOf<std::map<std::string, T>> {
  using type = MapOf<T>;
};

}  // namespace detail

template <class T>
const Type& type_of() noexcept {
  static constexpr typename detail::TypeOf<T>::type type{};
  return type;
}

}  // namespace weir::config
