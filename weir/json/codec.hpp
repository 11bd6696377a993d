// Codecs, which read and write the values of a type: their base, and those of single values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/json/detail/reader.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/json/detail/text_value.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::json {

/// A Kinds is a set of Kind values.
using Kinds = std::uint8_t;
template <class... K>
constexpr Kinds kinds_of(K... kinds) {
  return static_cast<Kinds>((0U | ... | (1U << static_cast<unsigned>(kinds))));
}

namespace detail {

/// CodecOf is the codec of a type T of this shape.
template <class T, Shape>
struct CodecOf;

}  // namespace detail

/// A Codec reads and writes a T. Specialise it to give a type of yours its own form in JSON. A
/// specialisation has the same two functions, which call functions of Reader, Writer and other
/// codecs. It also has `kinds` if a variant holds a T: the kinds of JSON values that may become a
/// T.
template <class T>
struct Codec : detail::CodecOf<T, detail::shape_of<T>()> {};

namespace detail {

/// Returns the kinds of JSON values that may become a T.
template <class T>
consteval Kinds kinds_for() {
  static_assert(
      requires { Codec<T>::kinds; },
      "weir::json: an alternative of a variant has no kinds of JSON values: give the Codec of "
      "this type a `static constexpr json::Kinds kinds`, made by json::kinds_of()");
  return Codec<T>::kinds;
}

/// Fails with `expected null, a number or an object`, or the names of the kinds given.
bool fail_expected_kinds(Reader& in, Kinds kinds);

template <class T>
struct CodecOf<T, Shape::none> {
  static bool read(Reader&, T&) {
    fail<T>();
    return false;
  }
  static void write(Writer&, const T&) { fail<T>(); }

 private:
  // The functions fail, and not the class, so that has_form() can look at the class.
  template <class U>
  static consteval void fail() {
    static_assert(sizeof(U) == 0,
                  "weir::json: this type cannot be converted to JSON: it is neither a struct whose "
                  "fields are all public nor a type that json.hpp lists (specialise json::Codec)");
  }
};

/// Returns true if a T has a form in JSON. Fields of structs are not examined.
template <class T>
consteval bool has_form() {
  constexpr Shape shape = shape_of<T>();
  if constexpr (shape == Shape::none) {
    return !std::is_base_of_v<CodecOf<T, Shape::none>, Codec<T>>;
  } else if constexpr (shape == Shape::pointer) {
    return has_form<std::remove_const_t<typename T::element_type>>();
  } else if constexpr (shape == Shape::map) {
    return has_form<typename T::mapped_type>();
  } else if constexpr (shape == Shape::optional || shape == Shape::sequence ||
                       shape == Shape::set || shape == Shape::array) {
    return has_form<typename T::value_type>();
  } else {
    return true;
  }
}

template <class T>
struct CodecOf<T, Shape::boolean> {
  static constexpr Kinds kinds = kinds_of(Kind::boolean);
  static bool read(Reader& in, T& value) { return in.read(value); }
  static void write(Writer& out, T value) { out.write(value); }
};
template <class T>
struct CodecOf<T, Shape::integer> {
  static constexpr Kinds kinds = kinds_of(Kind::number);
  static bool read(Reader& in, T& value) { return in.read(value); }
  static void write(Writer& out, T value) { out.write(value); }
};
template <class T>
struct CodecOf<T, Shape::real> : CodecOf<T, Shape::integer> {};

template <class T>
struct CodecOf<T, Shape::text> {
  static constexpr Kinds kinds = kinds_of(Kind::text);
  static bool read(Reader& in, T& value) { return in.read(value); }
  static void write(Writer& out, std::string_view value) { out.write(value); }
};
template <class T>
struct CodecOf<T, Shape::view> {
  static constexpr Kinds kinds = kinds_of(Kind::text);
  static bool read(Reader&, T&) {
    static_assert(sizeof(T) == 0,
                  "weir::json: a std::string_view cannot be read, since it cannot hold unescaped "
                  "text and would dangle: read into a std::string");
    return false;
  }
  static void write(Writer& out, std::string_view value) { out.write(value); }
};

template <class T>
struct CodecOf<T, Shape::text_value> {
  static constexpr Kinds kinds = kinds_of(Kind::text);
  static bool read(Reader& in, T& value) {
    if (in.kind() != Kind::text) return in.fail_expected(TextValue<T>::expected());
    const Reader::Mark mark = in.mark();
    std::string text;
    if (!in.read(text)) return false;
    return TextValue<T>::read(text, value) || in.fail_rule(mark, expected_instead_of<T>(text));
  }
  static void write(Writer& out, const T& value) {
    out.write(std::string_view(TextValue<T>::write(value)));
  }
};

template <class T>
struct CodecOf<T, Shape::nothing> {
  static constexpr Kinds kinds = kinds_of(Kind::null);
  static bool read(Reader& in, T&) { return in.take_null() || in.fail_expected("null"); }
  static void write(Writer& out, const T&) { out.put(std::string_view("null")); }
};

template <class T>
struct CodecOf<T, Shape::number_enumeration> {
  using Number = std::underlying_type_t<T>;
  static_assert(Integer<Number>,
                "weir::json: an enum of bool or characters needs names: see json::enumerators");
  static constexpr Kinds kinds = kinds_of(Kind::number);
  static bool read(Reader& in, T& value) {
    Number number = 0;
    if (!in.read(number)) return false;
    value = static_cast<T>(number);
    return true;
  }
  static void write(Writer& out, T value) { out.write(static_cast<Number>(value)); }
};

/// Fails with `expected "a", "b" or "c"`, with the names given.
bool fail_expected_names(Reader& in, const std::string_view* names, std::size_t count);

template <class T>
struct CodecOf<T, Shape::named_enumeration> {
  static constexpr Kinds kinds = kinds_of(Kind::text);
  static bool read(Reader& in, T& value) {
    std::string name;
    if (!in.read(name)) return false;
    for (const Named<T>& each : enumerators<T>) {
      if (each.name != name) continue;
      value = each.value;
      return true;
    }
    std::array<std::string_view, enumerators<T>.size()> names;
    for (std::size_t index = 0; index < names.size(); ++index) {
      names[index] = enumerators<T>[index].name;
    }
    return fail_expected_names(in, names.data(), names.size());
  }
  static void write(Writer& out, T value) {
    for (const Named<T>& each : enumerators<T>) {
      if (each.value == value) return out.write(each.name);
    }
    using Number = std::conditional_t<Integer<std::underlying_type_t<T>>, std::underlying_type_t<T>,
                                      std::int32_t>;
    out.write(static_cast<Number>(value));
  }
};

template <class T>
struct CodecOf<T, Shape::optional> {
  using Value = typename T::value_type;
  static_assert((kinds_for<Value>() & kinds_of(Kind::null)) == 0,
                "weir::json: nested optionals: null cannot say which level has no value");
  static constexpr Kinds kinds = kinds_of(Kind::null) | kinds_for<Value>();
  static bool read(Reader& in, T& value) {
    if (in.take_null()) {
      value.reset();
      return true;
    }
    return Codec<Value>::read(in, value.emplace());
  }
  static void write(Writer& out, const T& value) {
    if (!value) return out.put(std::string_view("null"));
    Codec<Value>::write(out, *value);
  }
};

template <class T>
struct CodecOf<T, Shape::pointer> {
  using Value = std::remove_const_t<typename T::element_type>;
  static constexpr Kinds kinds = kinds_of(Kind::null) | kinds_for<Value>();
  static bool read(Reader& in, T& value) {
    if (in.take_null()) {
      value.reset();
      return true;
    }
    if (!in.charge(sizeof(Value))) return false;
    auto made = std::make_unique<Value>();
    const bool read = Codec<Value>::read(in, *made);
    value = std::move(made);
    return read;
  }
  static void write(Writer& out, const T& value) {
    static_assert((kinds_for<Value>() & kinds_of(Kind::null)) == 0,
                  "weir::json: nested optionals: null cannot say which level has no value");
    if (value == nullptr) return out.put(std::string_view("null"));
    Codec<Value>::write(out, *value);
  }
};

/// True if a value of this type contains no other values, in which errors might be kept.
template <class T>
inline constexpr bool is_single =
    shape_of<T>() >= Shape::boolean && shape_of<T>() <= Shape::nothing;

/// True if a field of this type may be left out, because the type has an empty value.
template <class T>
inline constexpr bool may_be_absent =
    shape_of<T>() == Shape::optional || shape_of<T>() == Shape::pointer;

}  // namespace detail
}  // namespace weir::json
