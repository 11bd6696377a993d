// JSON in bodies: structs that handlers return, and what is said to who sent the wrong ones.
#pragma once

#include "weir/base/buffer.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/json/detail/error.hpp"
#include "weir/json/write.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::http {
namespace detail {

/// Writes JSON into the body of a response; what is short needs no memory of its own.
class JsonBodyWriter final : public json::Writer {
 public:
  JsonBodyWriter() noexcept = default;
  /// The body. Once, after everything has been written.
  Body finish();

 private:
  void take(std::string_view part) override;
  Buffer earlier_;
};

/// Whether the body may be read as JSON: its Content-Type says so, or there is none; and neither a
/// charset nor a Content-Encoding says that the bytes are not UTF-8 as they stand.
bool accepts_json(const Request& request) noexcept;

/// 400 with a problem (RFC 9457) that says where in the body what is wrong.
Response bad_json(const json::Error& error);

}  // namespace detail

/// An answer with `value` as JSON: what a handler that returns a struct or a container means. See
/// json.hpp for what C++ types become.
template <class T>
Response json(const T& value, Status status = Status::ok) {
  detail::JsonBodyWriter writer;
  json::Codec<T>::write(writer, value);
  return Response(status, json_type, writer.finish());
}

}  // namespace weir::http
