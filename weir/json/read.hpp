// json::read(): a value of a type out of a JSON text.
#pragma once

#include <expected>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/json/codec.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/detail/codec_variant.hpp"
#include "weir/json/detail/error.hpp"
#include "weir/json/read_options.hpp"
#include "weir/json/detail/reader.hpp"

namespace weir::json {

/// A T, or what was wrong with the text; as Result<T> is, but the Error says where.
template <class T = void>
class [[nodiscard]] Read : public std::expected<T, Error> {
 public:
  using Base = std::expected<T, Error>;
  using Base::Base;
  Read() = default;
  Read(Base base) : Base(std::move(base)) {}
};

/// Reads `text`, the whole of it, into `value`, whose memory is used again where that is possible.
/// Nothing of what it held before is left, but with MissingFields::keep what the text leaves out.
/// After an error it holds some of the values that came before. Errors: see read().
template <class T>
Read<> read_into(T& value, std::string_view text, const ReadOptions& options = {}) {
  Reader in(text, options);
  if (in.begin() && Codec<T>::read(in, value) && in.finish()) return {};
  return std::unexpected(in.error());
}

/// The T that `text` is, the whole of it: exactly what RFC 8259 calls a JSON text, in UTF-8.
/// Threads: any. Lifetime: the value keeps nothing of the text. Errors: see Error; the first that
/// is met on the way from the front.
template <class T>
Read<T> read(std::string_view text, const ReadOptions& options = {}) {
  static_assert(std::is_default_constructible_v<T>,
                "weir::json: what is read is first made without arguments");
  Read<T> result;
  Reader in(text, options);
  if (!in.begin() || !Codec<T>::read(in, *result) || !in.finish()) {
    result = Read<T>(std::unexpect, in.error());
  }
  return result;
}

}  // namespace weir::json
