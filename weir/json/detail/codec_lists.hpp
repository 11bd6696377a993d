// The codecs of JSON arrays (sequences, sets, fixed arrays, tuples) and of maps, which are
// objects.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/json/codec.hpp"

namespace weir::json::detail {

/// Writes `[`, the elements with commas between them, and `]`.
template <class Range>
void write_elements(Writer& out, const Range& range) {
  using Element = std::remove_cvref_t<typename Range::value_type>;
  char before = '[';
  for (const auto& element : range) {
    out.put(before);
    Codec<Element>::write(out, element);
    before = ',';
  }
  if (before == '[') out.put('[');
  out.put(']');
}

template <class T>
struct CodecOf<T, Shape::sequence> {
  using Element = typename T::value_type;
  static constexpr Kinds kinds = kinds_of(Kind::array);
  static bool read(Reader& in, T& value) {
    value.clear();
    if (!in.open_array()) return false;
    for (std::size_t index = 0; in.next_item(index, ']'); ++index) {
      if (!in.charge(sizeof(Element))) return in.failed_in_element(index);
      const Reader::Mark mark = in.mark();
      const bool read = read_element(in, value) && (is_single<Element> || !in.has_kept_since(mark));
      if (!read && !in.recover_in_element(index, mark)) [[unlikely]]
        return false;
    }
    return in.ok();
  }
  static void write(Writer& out, const T& value) { write_elements(out, value); }

 private:
  static bool read_element(Reader& in, T& value) {
    if constexpr (std::is_same_v<decltype(value.back()), Element&>) {
      return Codec<Element>::read(in, value.emplace_back());
    } else {  // std::vector<bool>
      Element element{};
      if (!Codec<Element>::read(in, element)) return false;
      value.push_back(element);
      return true;
    }
  }
};

template <class T>
struct CodecOf<T, Shape::set> {
  using Element = typename T::value_type;
  static constexpr Kinds kinds = kinds_of(Kind::array);
  static bool read(Reader& in, T& value) {
    value.clear();
    if (!in.open_array()) return false;
    for (std::size_t index = 0; in.next_item(index, ']'); ++index) {
      if (!in.charge(sizeof(Element))) return in.failed_in_element(index);
      const Reader::Mark mark = in.mark();
      Element element{};
      bool read = Codec<Element>::read(in, element) && !in.has_kept_since(mark);
      if (read && !value.insert(std::move(element)).second) read = in.fail("given twice");
      if (!read && !in.recover_in_element(index, mark)) [[unlikely]]
        return false;
    }
    return in.ok();
  }
  static void write(Writer& out, const T& value) { write_elements(out, value); }
};

/// Reads exactly `size` elements; `read_element(index)` reads one.
template <class ReadElement>
bool read_elements(Reader& in, std::size_t size, ReadElement read_element) {
  if (!in.open_array()) return false;
  std::size_t index = 0;
  for (; in.next_item(index, ']'); ++index) {
    if (index == size) {
      return in.fail("expected an array of " + std::to_string(size) + ", found more elements");
    }
    const Reader::Mark mark = in.mark();
    const bool read = read_element(index) && !in.has_kept_since(mark);
    if (!read && !in.recover_in_element(index, mark)) [[unlikely]]
      return false;
  }
  if (!in.ok() || index == size) return in.ok();
  return in.fail("expected an array of " + std::to_string(size) + ", found " +
                 std::to_string(index));
}

template <class T>
struct CodecOf<T, Shape::array> {
  using Element = typename T::value_type;
  static constexpr Kinds kinds = kinds_of(Kind::array);
  static bool read(Reader& in, T& value) {
    return read_elements(in, value.size(), [&in, &value](std::size_t index) {
      return Codec<Element>::read(in, value[index]);
    });
  }
  static void write(Writer& out, const T& value) { write_elements(out, value); }
};

template <class T>
struct CodecOf<T, Shape::tuple> {
  static constexpr Kinds kinds = kinds_of(Kind::array);
  template <std::size_t I>
  using ElementCodec = Codec<std::tuple_element_t<I, T>>;
  using Indices = std::make_index_sequence<std::tuple_size_v<T>>;

  static bool read(Reader& in, T& value) {
    return read_elements(in, std::tuple_size_v<T>, [&in, &value](std::size_t index) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (false || ... || (index == I && ElementCodec<I>::read(in, std::get<I>(value))));
      }(Indices());
    });
  }
  static void write(Writer& out, const T& value) {
    out.put('[');
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I > 0 ? out.put(',') : void(), ElementCodec<I>::write(out, std::get<I>(value))), ...);
    }(Indices());
    out.put(']');
  }
};

template <class T>
struct CodecOf<T, Shape::map> {
  using Key = typename T::key_type;
  using Value = typename T::mapped_type;
  static_assert(std::is_same_v<Key, std::string> || Integer<Key>,
                "weir::json: the keys of a map are std::string or integers");
  static constexpr Kinds kinds = kinds_of(Kind::object);

  static bool read(Reader& in, T& value) {
    value.clear();
    if (!in.open_object()) return false;
    std::string text;
    for (std::size_t index = 0; in.next_item(index, '}'); ++index) {
      if (!in.charge(sizeof(typename T::value_type)) || !in.read_key(text)) return false;
      const Reader::Mark mark = in.mark();
      Key key{};
      if (!key_of(text, key)) {
        in.fail_text("expected an integer in quotes as the name");
        if (!in.recover_in_field(text, mark)) return false;
        continue;
      }
      const auto [entry, added] = value.try_emplace(std::move(key));
      if (!added) in.fail_text("given twice");
      const bool read = added && Codec<Value>::read(in, entry->second) && !in.has_kept_since(mark);
      if (!read && !recover_in(in, entry->first, mark)) [[unlikely]]
        return false;
    }
    return in.ok();
  }
  static void write(Writer& out, const T& value) {
    char before = '{';
    for (const auto& [key, mapped] : value) {
      out.put(before);
      write_key(out, key);
      out.put(':');
      Codec<Value>::write(out, mapped);
      before = ',';
    }
    if (before == '{') out.put('{');
    out.put('}');
  }

 private:
  static bool key_of(std::string& text, Key& key) {
    if constexpr (Integer<Key>) {
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, key);
      if (error != std::errc() || stop != end) return false;
      // Each number has one text: no leading zeros and no -0.
      return std::to_string(key) == text;
    } else {
      key = std::move(text);
      return true;
    }
  }
  static bool recover_in(Reader& in, const Key& key, const Reader::Mark& mark) {
    if constexpr (Integer<Key>) {
      return in.recover_in_field(std::to_string(key), mark);
    } else {
      return in.recover_in_field(key, mark);
    }
  }
  static void write_key(Writer& out, const Key& key) {
    if constexpr (Integer<Key>) {
      out.put('"');
      out.write(key);
      out.put('"');
    } else {
      out.write(std::string_view(key));
    }
  }
};

}  // namespace weir::json::detail
