// json::write() writes a value as a JSON text.
#pragma once

#include <string>

#include "weir/base/buffer.hpp"
#include "weir/json/codec.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/detail/codec_variant.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::json {

/// Appends `value` as JSON without blanks. The text is always valid; Writer says how it writes
/// values that JSON does not have. It allocates nothing itself if `out` has room.
/// Errors: throws only std::bad_alloc.
/// Threads: any.
template <class T>
void write_to(std::string& out, const T& value) {
  StringWriter writer(out);
  Codec<T>::write(writer, value);
  writer.finish();
}
template <class T>
void write_to(Buffer& out, const T& value) {
  BufferWriter writer(out);
  Codec<T>::write(writer, value);
  writer.finish();
}

/// Returns `value` as a JSON text; see write_to().
template <class T>
std::string write(const T& value) {
  std::string text;
  write_to(text, value);
  return text;
}

}  // namespace weir::json
