// JSON objects that are structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/json/codec.hpp"
#include "weir/json/detail/field_names.hpp"
#include "weir/json/detail/fields.hpp"

namespace weir::json::detail {

template <class T>
consteval std::uint32_t required_fields() {
  // Calls with the addresses only: the fields are those of no object.
  return with_fields(place<T>.value, [](auto&... fields) {
    std::uint32_t required = 0;
    std::uint32_t bit = 1;
    [[maybe_unused]] const auto look = [&required, &bit](bool may_be_missing) {
      if (!may_be_missing) required |= bit;
      bit <<= 1;
    };
    (look(may_be_absent<std::remove_cvref_t<decltype(fields)>>), ...);
    return required;
  });
}

template <class T>
inline constexpr FieldTable field_table{names<T>, required_fields<T>()};

/// The value of a field whose key has been read.
template <class T, std::size_t Index, class Field>
bool read_field(Reader& in, Field& field) {
  static_assert(!std::is_const_v<Field>, "weir::json: a const field cannot be read");
  if (Codec<Field>::read(in, field)) return true;
  return in.failed_in_field(names<T>[Index]);
}

/// Reads the field if it is the one that comes next, without blanks in its key.
template <class T, std::size_t Index, class Field>
void read_if_next(Reader& in, FieldWalk& walk, Field& field) {
  using Next = FieldWalk::Next;
  if (walk.next > Next::key || !in.take(key_token<T, Index>)) return;
  if (!read_field<T, Index>(in, field)) {
    walk.next = Next::failed;
    return;
  }
  walk.seen |= std::uint32_t{1} << Index;
  in.next_separator(walk);
}

/// Empties an optional or pointer that the text did not mention, as what is empty is not written: a
/// value that is read into again must not carry one message's data into the next.
template <std::size_t Index, class Field>
void empty_if_unseen([[maybe_unused]] const FieldWalk& walk, [[maybe_unused]] Field& field) {
  if constexpr (may_be_absent<Field>) {
    if ((walk.seen >> Index & 1U) == 0) field.reset();
  }
}

/// Reads the fields that are left, in any order.
template <class T, std::size_t... I, class... Field>
void read_others(Reader& in, FieldWalk& walk, std::index_sequence<I...>, Field&... fields) {
  while (in.next_field(field_table<T>, walk)) {
    bool read = false;
    ((walk.index == I ? static_cast<void>(read = read_field<T, I>(in, fields)) : void()), ...);
    walk.next = read ? FieldWalk::Next::separator : FieldWalk::Next::failed;
  }
}

template <class T>
struct CodecOf<T, Shape::object> {
  static constexpr Kinds kinds = kinds_of(Kind::object);

  static bool read(Reader& in, T& value) {
    if constexpr (check<T>()) {
      if (!in.open_object()) return false;
      FieldWalk walk;
      with_fields(value, [&in, &walk](auto&... fields) {
        [&]<std::size_t... I>(std::index_sequence<I...> all) {
          // Most senders keep the order, and many have no blanks: one comparison a field.
          (read_if_next<T, I>(in, walk, fields), ...);
          if (walk.next < FieldWalk::Next::closed) read_others<T>(in, walk, all, fields...);
          if (!in.keeps_missing_fields()) (empty_if_unseen<I>(walk, fields), ...);
        }(std::make_index_sequence<sizeof...(fields)>());
      });
      return in.finish_fields(field_table<T>, walk);
    } else {
      return false;
    }
  }

  /// An optional or a pointer that is empty is left out.
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
  // Instantiated when something is read or written, so that a T may contain containers of itself.
  template <class U>
  static consteval bool check() {
    if constexpr (check_struct<U>()) {
      return check_names<U>();
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
