// JSON in bodies: responses made of C++ values and the answer to an invalid JSON request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/json/detail/writer.hpp"
#include "weir/json/error.hpp"
#include "weir/json/write.hpp"

namespace weir::http {
namespace detail {

/// Writes JSON into the body of a response. A short text needs no separate memory block.
class JsonBodyWriter final : public json::Writer {
 public:
  JsonBodyWriter() noexcept = default;
  /// Returns the body. The caller calls this once, after it has written everything.
  Body finish();

 private:
  void append(std::string_view part) override;
  Buffer earlier_;
};

/// Returns true if the body may be of a type that `is_type` accepts. Its Content-Type must be
/// absent or accepted; that of QUERY must not be absent (RFC 10008 §2). Its Content-Encoding must
/// be empty, "identity", or decoded. A charset must be UTF-8 or its subset US-ASCII.
bool accepts_type(const Request& request, bool (*is_type)(std::string_view type)) noexcept;

/// Returns the answer to a request whose type is not accepted: 400 for QUERY without Content-Type
/// (RFC 10008 §2.1), else 415.
Status status_of_type(const Request& request) noexcept;

/// Returns true if the body may be read as JSON; see accepts_type().
bool accepts_json(const Request& request) noexcept;

/// Returns the answer to the body `text` with these errors: 400 if it is malformed, or 422 if its
/// values do not fit.
Response invalid_json_response(const std::vector<json::Error>& errors, std::string_view text);

}  // namespace detail

/// Returns a response with `value` as JSON. A handler that returns a struct or a container is
/// answered in this way. See weir/json.hpp for the JSON form of each C++ type.
template <class T>
Response json(const T& value, Status status = Status::ok) {
  detail::JsonBodyWriter writer;
  json::Codec<T>::write(writer, value);
  return Response(status, json_type, writer.finish());
}

}  // namespace weir::http
