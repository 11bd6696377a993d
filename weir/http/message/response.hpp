// What a handler answers: a status, fields and a body, or a function that streams the body.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/http/message/detail/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// A response. Content-Length, Transfer-Encoding, Connection and Date are the server's; fields of
/// these names given by a handler are refused. Threads: one at a time. Move-only.
class Response {
 public:
  /// An empty body; also what a handler that returns a Status means.
  Response(Status status = Status::ok) noexcept : status_(status) {}
  Response(Status status, MediaType content_type, Body body) noexcept
      : status_(status), content_type_(content_type.text()), body_(std::move(body)) {}

  Status status() const noexcept { return status_; }
  void set_status(Status status) noexcept { status_ = status; }

  /// Adds a field behind the others, or replaces those of its name. A field that may not be sent
  /// (see valid_field(), or a name that belongs to the server) makes the whole response invalid:
  /// the client gets a 500, the log the field's name.
  void add(std::string_view name, std::string_view value);
  void set(std::string_view name, std::string_view value);
  const Fields& fields() const noexcept;
  /// The error that this response tells the client of, if a handler returned one: when the status
  /// is 500 or more, the server logs it.
  std::error_code cause() const noexcept;
  void set_cause(std::error_code cause);

  /// The name of the first field that was refused; empty when all is well.
  std::string_view invalid_field() const noexcept;

  /// True if there is nothing to it but the status, the media type and the body: no field was
  /// added, and no error is told.
  bool plain() const noexcept { return extras_ == nullptr; }

  /// The media type unless a field says so; empty for none.
  std::string_view content_type() const noexcept { return content_type_; }

  Body& body() noexcept { return body_; }
  const Body& body() const noexcept { return body_; }

 private:
  /// What few responses have; the others do not pay for it.
  struct Extras {
    Fields fields;
    std::string invalid_field;
    std::error_code cause;
  };

  Extras& extras();
  bool may_set(std::string_view name);
  void note(std::string_view name, const Result<>& added);

  Status status_;
  std::string_view content_type_;
  Body body_;
  BlockPtr<Extras> extras_;
};

inline constexpr char text_type[] = "text/plain; charset=utf-8";
inline constexpr char html_type[] = "text/html; charset=utf-8";
inline constexpr char json_type[] = "application/json";

/// 200 with a text; a literal is sent from where it stands, anything else is moved or copied.
inline Response text(Literal body) {
  return {Status::ok, text_type, Body(body)};
}
template <OwnedText S>
Response text(S&& body) {
  return {Status::ok, text_type, Body(std::forward<S>(body))};
}
inline Response html(Literal body) {
  return {Status::ok, html_type, Body(body)};
}
template <OwnedText S>
Response html(S&& body) {
  return {Status::ok, html_type, Body(std::forward<S>(body))};
}

/// A bodiless response with this status code, 100 to 599 (others become 500).
inline Response status(int code) noexcept {
  const auto status = static_cast<Status>(code);
  return {is_valid(status) ? status : Status::internal_error};
}

/// 200 with a body that `write(sink, args...)` produces while it is sent, at the speed of the
/// client: a function that returns a Task<Result<>> and takes a BodySink& first. Arguments are
/// moved in. In HTTP/1.1 the body is chunked; when the function fails, the connection is closed
/// without the last chunk, so that the client sees an incomplete body. One that fails before it
/// wrote or waited is answered as a handler that fails. What the function holds lives until the
/// body is sent, as the request does; its body cannot be read any more.
template <class Write, class... Args>
Response stream(MediaType content_type, Write write, Args... args) {
  return {Status::ok, content_type,
          Body(StreamFunction(
              [write = std::move(write), ... args = std::move(args)](BodySink& sink) mutable {
                return write(sink, std::move(args)...);
              }))};
}

}  // namespace weir::http
