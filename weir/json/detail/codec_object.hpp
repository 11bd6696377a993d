// The codec of structs, which are JSON objects.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/json/codec.hpp"
#include "weir/json/detail/field_names.hpp"
#include "weir/json/detail/fields.hpp"

namespace weir {

template <class T, class... Rules>
class Checked;

}  // namespace weir

namespace weir::json::detail {

template <class T>
inline constexpr bool is_checked = false;
template <class T, class... Rules>
inline constexpr bool is_checked<Checked<T, Rules...>> = true;

/// Returns true if a default is not the zero value of its type: 0, false, an empty text or
/// container. A zero value does not show whether the struct names it or no initialiser exists.
template <class Field>
bool is_default(const Field& field) {
  constexpr Shape shape = shape_of<Field>();
  if constexpr (is_checked<Field>) {
    return is_default(*field);
  } else if constexpr (shape == Shape::sequence || shape == Shape::set || shape == Shape::map) {
    return field.begin() != field.end();
  } else if constexpr (shape == Shape::array) {
    for (const auto& each : field) {
      if (is_default(each)) return true;
    }
    return false;
  } else if constexpr (shape == Shape::tuple) {
    return std::apply([](const auto&... each) { return (false || ... || is_default(each)); },
                      field);
  } else if constexpr (may_be_absent<Field> || shape == Shape::variant ||
                       !std::equality_comparable<Field>) {
    return false;
  } else {
    return !(field == Field());
  }
}

template <class T>
consteval std::uint32_t required_fields() {
  // The call uses only the types of the fields, since there is no object.
  return with_fields(field_probe<T>.value, [](auto&... fields) {
    std::uint32_t required = 0;
    std::uint32_t bit = 1;
    [[maybe_unused]] const auto add = [&required, &bit](bool may_be_missing) {
      if (!may_be_missing) required |= bit;
      bit <<= 1;
    };
    (add(may_be_absent<std::remove_cvref_t<decltype(fields)>>), ...);
    return required;
  });
}

template <class T>
inline constexpr FieldTable field_table{names<T>, required_fields<T>()};

template <std::size_t Index, class Field>
void take_default(FieldCursor& cursor, Field& field, Field& value) {
  constexpr std::uint32_t bit = std::uint32_t{1} << Index;
  if constexpr (!may_be_absent<Field>) {
    if ((cursor.seen & bit) != 0 || !is_default(value)) return;
    field = std::move(value);
    cursor.seen |= bit;
  }
}

/// Gives the fields that the text does not contain their defaults in a new T, and marks them as
/// seen.
template <class T>
[[gnu::cold]] void take_defaults(FieldCursor& cursor, T& value) {
  if constexpr (std::is_default_constructible_v<T>) {
    T fresh{};
    with_fields(value, [&](auto&... fields) {
      with_fields(fresh, [&](auto&... defaults) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (take_default<I>(cursor, fields, defaults), ...);
        }(std::make_index_sequence<sizeof...(fields)>());
      });
    });
  }
}

/// Returns the names of T, with those as required that have no default.
template <class T>
FieldTable field_table_without_defaults() {
  static const std::uint32_t required = [] {
    FieldCursor cursor;
    if constexpr (std::is_default_constructible_v<T>) {
      T value{};
      take_defaults(cursor, value);
    }
    return required_fields<T>() & ~cursor.seen;
  }();
  return {names<T>, required};
}

/// Reads the value of a field after its key has been read. Returns false after an error from which
/// the reader has not recovered.
template <class T, std::size_t Index, class Field>
bool read_field(Reader& in, Field& field) {
  static_assert(!std::is_const_v<Field>, "weir::json: a const field cannot be read");
  if constexpr (is_single<Field>) {
    const char* const start = in.position();
    if (Codec<Field>::read(in, field)) [[likely]]
      return true;
    return in.recover_in_field(names<T>[Index], in.mark_at(start));
  } else {
    const Reader::Mark mark = in.mark();
    if (Codec<Field>::read(in, field) && !in.has_kept_since(mark)) [[likely]]
      return true;
    return in.recover_in_field(names<T>[Index], mark);
  }
}

/// Reads the field if its key comes next and has no blanks.
template <class T, std::size_t Index, class Field>
void read_if_next(Reader& in, FieldCursor& cursor, Field& field) {
  using State = FieldCursor::State;
  if (cursor.state > State::key || !in.take(key_token<T, Index>)) return;
  if (!read_field<T, Index>(in, field)) {
    cursor.state = State::failed;
    return;
  }
  cursor.seen |= std::uint32_t{1} << Index;
  in.next_separator(cursor);
}

/// Empties an optional or pointer that the text does not contain, since empty ones are not
/// written. A value that is read into again must not keep the data of an earlier message.
template <std::size_t Index, class Field>
void reset_if_missing([[maybe_unused]] const FieldCursor& cursor, [[maybe_unused]] Field& field) {
  if constexpr (may_be_absent<Field>) {
    if ((cursor.seen >> Index & 1U) == 0) field.reset();
  }
}

/// Reads the remaining fields, in any order.
template <class T, std::size_t... I, class... Field>
void read_others(Reader& in, FieldCursor& cursor, std::index_sequence<I...>, Field&... fields) {
  while (in.next_field(field_table<T>, cursor)) {
    bool read = false;
    ((cursor.index == I ? static_cast<void>(read = read_field<T, I>(in, fields)) : void()), ...);
    cursor.state = read ? FieldCursor::State::separator : FieldCursor::State::failed;
  }
}

/// True if the type of a field has a form in JSON. The compiler names all three in its message.
template <class Struct, class Type, auto Field>
inline constexpr bool field_has_form = has_form<Type>();

template <class Struct, class Type, auto Field>
consteval bool check_form() {
  static_assert(
      field_has_form<Struct, Type, Field>,
      "weir::json: a field of a struct has no form in JSON: its type is neither a struct "
      "whose fields are all public nor a type that json.hpp lists (specialise json::Codec)");
  return field_has_form<Struct, Type, Field>;
}

/// Checks that all fields of a struct have forms in JSON.
template <class T>
consteval bool check_forms() {
  return check_fields<T>([]<class Type, auto Field>() { return check_form<T, Type, Field>(); });
}

template <class T>
struct CodecOf<T, Shape::object> {
  static constexpr Kinds kinds = kinds_of(Kind::object);

  static bool read(Reader& in, T& value) {
    if constexpr (check<T>()) {
      if (!in.open_object()) return false;
      FieldCursor cursor;
      with_fields(value, [&in, &cursor](auto&... fields) {
        [&]<std::size_t... I>(std::index_sequence<I...> all) {
          // Most senders keep the order, and many write no blanks: this is one comparison per
          // field.
          (read_if_next<T, I>(in, cursor, fields), ...);
          if (cursor.state < FieldCursor::State::closed) read_others<T>(in, cursor, all, fields...);
          if (!in.keeps_missing_fields()) (reset_if_missing<I>(cursor, fields), ...);
        }(std::make_index_sequence<sizeof...(fields)>());
      });
      const bool is_missing = (required_fields<T>() & ~cursor.seen) != 0;
      if (is_missing && !in.keeps_missing_fields()) [[unlikely]]
        take_defaults(cursor, value);
      return in.finish_fields(field_table<T>, cursor);
    } else {
      return false;
    }
  }

  /// Writes all fields except for empty optionals and pointers.
  static void write(Writer& out, const T& value) {
    if constexpr (check<T>()) {
      with_fields(value, [&out](const auto&... fields) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          bool first = true;
          (write_field<I>(out, first, fields), ...);
          if (first) out.put('{');
        }(std::make_index_sequence<sizeof...(fields)>());
      });
      out.put('}');
    }
  }

 private:
  // The check is instantiated when a T is read or written, so a T may contain containers of
  // itself.
  template <class U>
  static consteval bool check() {
    if constexpr (check_struct<U>()) {
      return check_names<U>() && check_forms<U>();
    } else {
      return false;
    }
  }

  template <std::size_t Index, class Field>
  static void write_field(Writer& out, bool& first, const Field& field) {
    if constexpr (may_be_absent<Field>) {
      if (!field) return;
    }
    if (first) {
      out.put(key_token<T, Index, '{'>);
    } else {
      out.put(key_token<T, Index, ','>);
    }
    first = false;
    Codec<Field>::write(out, field);
  }
};

}  // namespace weir::json::detail
