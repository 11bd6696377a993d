// json::read() reads a value of a given type from a JSON text.
#pragma once

#include <expected>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/json/codec.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/detail/codec_variant.hpp"
#include "weir/json/detail/reader.hpp"
#include "weir/json/error.hpp"
#include "weir/json/read_options.hpp"

namespace weir::json {

/// A Read is a T, or the error of the text. It is like a Result<T>, but its Error has the
/// position.
template <class T = void>
class [[nodiscard]] Read : public std::expected<T, Error> {
 public:
  using Base = std::expected<T, Error>;
  using Base::Base;
  Read() = default;
  Read(Base base) : Base(std::move(base)) {}
};

/// Reads all of `text` into `value` and reuses the memory of `value` where possible. Nothing of
/// the old value is left, except for the missing fields under MissingFields::keep. After an error
/// `value` holds some of the values that came before the error.
/// Errors: see read().
template <class T>
Read<> read_into(T& value, std::string_view text, const ReadOptions& options = {}) {
  Reader in(text, options);
  if (in.begin() && Codec<T>::read(in, value) && in.finish()) return {};
  return std::unexpected(in.error());
}

/// Reads like read_into(), but continues after an error in a field or an element as long as the
/// text is well-formed. Returns: the errors in the order of the text, at most
/// ReadOptions::errors_max; empty if there are none.
template <class T>
std::vector<Error> read_all_errors(T& value, std::string_view text,
                                   const ReadOptions& options = {}) {
  Reader in(text, options, options.errors_max);
  if (in.begin() && Codec<T>::read(in, value)) static_cast<void>(in.finish());
  return in.errors();
}

/// Returns true if `text` is a JSON text of RFC 8259, whatever its values are.
bool is_well_formed(std::string_view text, const ReadOptions& options = {});

/// Reads a T from all of `text`, which is exactly a JSON text of RFC 8259, in UTF-8.
/// Errors: the first error in the text; see Error.
/// Threads: any.
/// Lifetime: the value holds no reference to the text.
template <class T>
Read<T> read(std::string_view text, const ReadOptions& options = {}) {
  static_assert(std::is_default_constructible_v<T>,
                "weir::json: read() needs a type with a default constructor");
  Read<T> result;
  Reader in(text, options);
  if (!in.begin() || !Codec<T>::read(in, *result) || !in.finish()) {
    result = Read<T>(std::unexpect, in.error());
  }
  return result;
}

}  // namespace weir::json
