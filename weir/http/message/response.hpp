// The response of a handler: a status, headers and a body, or a function that streams the body.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

class BodySource;
class Request;

/// A response; move-only. The server sets Content-Length, Transfer-Encoding and Connection. A
/// handler that sets one of them makes the response invalid, and so does a Date that is no date.
/// The server adds a Date if there is none. A status below 200 or above 599 is invalid too. The
/// server answers 500 instead of an invalid response, and logs the reason. Threads: one at a time.
class Response {
 public:
  /// Makes a response without a body. A handler that returns a Status is answered in this way. The
  /// server adds the description of the error to a status of 400 or more; see needs_error_page().
  Response(Status status = Status::ok) noexcept : status_(status) {}
  /// Makes the response to an error of a handler: its to_status(), without a body, and the error as
  /// its cause().
  Response(std::error_code error);
  Response(Status status, MediaType content_type, Body body) noexcept
      : status_(status), content_type_(content_type.text()), body_(std::move(body)) {}

  Status status() const noexcept { return status_; }
  void set_status(Status status) noexcept { status_ = status; }

  /// add_header() appends a header. set_header() replaces all headers of that name. A header that
  /// is_valid_header() rejects, or whose name belongs to the server, makes the whole response
  /// invalid. The client then gets a 500, and the server logs the header's name. HTTP/2 leaves out
  /// the headers that describe a connection of HTTP/1.1, such as Keep-Alive.
  void add_header(std::string_view name, std::string_view value);
  void set_header(std::string_view name, std::string_view value);
  /// Replaces all headers by a copy of `headers`, which takes less time than one call for each.
  void set_headers(const Headers& headers);
  const Headers& headers() const noexcept;
  /// Adds the name of a request header to Vary (RFC 9110 §12.5.5), unless Vary has it: caches then
  /// store a response for each value of that header.
  void add_vary(std::string_view name);
  /// Returns the error that a handler returned and that this response reports to the client, if
  /// any. The server logs it if the status is 500 or higher.
  std::error_code cause() const noexcept;
  void set_cause(std::error_code cause);

  /// Returns the problem that the response describes; a problem of only the status if none was set.
  Problem problem() const;
  void set_problem(Problem problem);
  /// Returns true if the response reports an error and has no body and no media type. The server
  /// then describes the error in the body; see Router::render_errors().
  bool needs_error_page() const noexcept {
    return status_ >= Status::bad_request && content_type_.empty() && !body_.is_stream() &&
           body_.text().empty();
  }
  /// Replaces the body and the media type by those of `page`. The response then has no problem to
  /// describe.
  void set_content(Response page) noexcept {
    content_type_ = page.content_type_;
    body_ = std::move(page.body_);
    if (extras_ != nullptr) extras_->problem.reset();
  }

  /// Returns the name of the first header that was rejected; empty if the response is valid.
  std::string_view invalid_header() const noexcept;

  /// Returns true if the response has only a status, a media type and a body: no header and no
  /// cause.
  bool is_plain() const noexcept { return extras_ == nullptr; }

  /// Returns the media type, which a Content-Type header overrides; empty for none.
  std::string_view content_type() const noexcept { return content_type_; }

  Body& body() noexcept { return body_; }
  const Body& body() const noexcept { return body_; }

 private:
  /// The parts that few responses have; other responses do not pay for them.
  struct Extras {
    Headers headers;
    std::string invalid_header;
    std::error_code cause;
    std::unique_ptr<Problem> problem;
  };

  Extras& extras();
  bool may_set_header(std::string_view name, std::string_view value);
  friend Response redirect(std::string_view location, Status status);
  void record_invalid_header(std::string_view name, const Result<>& added);

  Status status_;
  std::string_view content_type_;
  Body body_;
  BlockPtr<Extras> extras_;
};

inline constexpr char text_type[] = "text/plain; charset=utf-8";
inline constexpr char html_type[] = "text/html; charset=utf-8";
inline constexpr char json_type[] = "application/json";

/// Returns a text, with 200 unless another status is given. A literal is sent from its static
/// memory; any other text is moved or copied.
inline Response text(Literal body, Status status = Status::ok) {
  return {status, text_type, Body(body)};
}
template <OwnedText S>
Response text(S&& body, Status status = Status::ok) {
  return {status, text_type, Body(std::forward<S>(body))};
}
inline Response html(Literal body, Status status = Status::ok) {
  return {status, html_type, Body(body)};
}
template <OwnedText S>
Response html(S&& body, Status status = Status::ok) {
  return {status, html_type, Body(std::forward<S>(body))};
}

/// Returns 204, which has no body.
inline Response no_content() noexcept {
  return Status::no_content;
}

/// Returns a redirect to `location`, a URI or a path. Bytes that no URL has are percent-encoded;
/// see encode_reference(). 303 makes the client send a GET there; 307 and 308 keep the method. The
/// caller never passes a text from a client without checking it. The server answers 500 instead if
/// `location` is empty or `status` is not 301, 302, 303, 307 or 308.
Response redirect(std::string_view location, Status status = Status::see_other);

/// StreamOptions describes the body that stream() sends.
struct StreamOptions {
  /// Number of bytes, sent as Content-Length. Without it an HTTP/1.1 body is chunked. If the body
  /// ends early or exceeds it, the client sees an incomplete body and the server logs the fault.
  std::optional<std::uint64_t> length = std::nullopt;
  Status status = Status::ok;
};

namespace detail {

/// Returns true for a header that only the server sets, because it frames the message.
bool belongs_to_server(std::string_view name) noexcept;
/// Returns the source of the body of a request.
BodySource& body_of(const Request& request) noexcept;
/// Runs a task that reads this body of the request, which middleware may have replaced only while
/// the handler ran.
/// Cancel: passed on to the task.
Task<Result<>> write_with_body(Request& request, BodySource& body, Task<Result<>> writing);

/// Returns the bytes of a piece that a source has read, and if an end_of_stream ends its data.
inline Bytes bytes_of(const Buffer& piece) noexcept {
  return piece.bytes();
}
inline Bytes bytes_of(Bytes piece) noexcept {
  return piece;
}
template <class Piece>
constexpr bool ends_with_error = std::is_same_v<Piece, Buffer>;

template <class Write, class... Args>
concept WritesBody = std::is_invocable_r_v<Task<Result<>>, Write&, BodySink&, Args...>;

/// Sends all that `source.read()` returns.
template <class Source>
Task<Result<>> send_all(BodySink& sink, Source source) {
  for (;;) {
    const auto piece = co_await source.read();
    using Piece = std::remove_cvref_t<decltype(*piece)>;
    if (!piece) {
      if (ends_with_error<Piece> && piece.error() == Errc::end_of_stream) co_return {};
      co_return fail(piece.error());
    }
    const Bytes bytes = bytes_of(*piece);
    if (bytes.empty()) co_return {};
    if (auto sent = co_await sink.write(bytes); !sent) co_return sent;
  }
}

}  // namespace detail

/// A ByteSource has a function read(). Its task returns a Result<Bytes> that is empty at the end,
/// or a Result<Buffer>, as that of tcp::Stream.
template <class S>
concept ByteSource = std::move_constructible<S> && requires(S& source) { source.read(); };

/// Returns 200 with a body that `write(sink, args...)` produces while it is sent, at the speed of
/// the client. The function returns a Task<Result<>> and takes a BodySink& first. Function and
/// arguments are moved in. If the function fails, the server closes the connection and the client
/// sees an incomplete body. A function that fails before it wrote or waited is answered like a
/// handler that fails.
/// Lifetime: the function's state and the request live until the body is sent. The request's body
/// can no longer be read while the function runs; see duplex().
template <class Write, class... Args>
  requires detail::WritesBody<Write, Args...>
Response stream(MediaType content_type, StreamOptions options, Write write, Args... args) {
  auto bound = [write = std::move(write),
                ... args = std::move(args)](BodySink& sink) mutable -> Task<Result<>> {
    return write(sink, std::move(args)...);
  };
  return {options.status, content_type, Body(StreamFunction(std::move(bound)), options.length)};
}
template <class Write, class... Args>
  requires detail::WritesBody<Write, Args...>
Response stream(MediaType content_type, Write write, Args... args) {
  return stream(content_type, StreamOptions(), std::move(write), std::move(args)...);
}

/// DuplexOptions describes the body that duplex() sends, and the body that it reads.
struct DuplexOptions {
  Status status = Status::ok;
  std::optional<std::uint64_t> length = {};  ///< as in StreamOptions
  /// Longest wait for bytes of the request; ParseError::body_timed_out. It has the place of
  /// Limits::body_rate, because a client may wait for the response before it sends more.
  Duration read_timeout = std::chrono::seconds(60);
};

/// Returns a response like stream(), whose function reads the body of the request while it writes:
/// `write(request, sink, args...)`. Each direction has back-pressure: read() waits for the client's
/// bytes, and BodySink::write() waits until the client takes those of the response. The head leaves
/// with the first piece, or when the function waits. A client that waits for 100 (Continue) gets it
/// before the function is called. A rest of the request that the function leaves is dropped, if it
/// is short, or ends the connection of HTTP/1. If the client resets the stream or the connection,
/// the function is cancelled.
/// Each carrier can do it: HTTP/1.1 with chunks or a length, HTTP/2, and HTTP/1.0 with a length of
/// the request. Some clients of HTTP/1.1 read nothing before they have sent the whole request.
/// Lifetime: that of stream(). The body of the request can be read while the function runs, also if
/// the handler has read a part of it.
template <class Write, class... Args>
  requires std::is_invocable_r_v<Task<Result<>>, Write&, Request&, BodySink&, Args...>
Response duplex(Request& request, MediaType content_type, DuplexOptions options, Write write,
                Args... args) {
  auto bound = [&request, &body = detail::body_of(request), write = std::move(write),
                ... args = std::move(args)](BodySink& sink) mutable -> Task<Result<>> {
    return detail::write_with_body(request, body, write(request, sink, std::move(args)...));
  };
  return {options.status, content_type,
          Body(StreamFunction(std::move(bound)), options.length, options.read_timeout)};
}
template <class Write, class... Args>
  requires std::is_invocable_r_v<Task<Result<>>, Write&, Request&, BodySink&, Args...>
Response duplex(Request& request, MediaType content_type, Write write, Args... args) {
  return duplex(request, content_type, DuplexOptions(), std::move(write), std::move(args)...);
}

/// Returns 200 with a body that is all that `source` has left, for example the response of another
/// server: `stream("text/html", std::move(answer))`.
template <ByteSource Source>
Response stream(MediaType content_type, StreamOptions options, Source source) {
  return stream(content_type, options, detail::send_all<Source>, std::move(source));
}
template <ByteSource Source>
Response stream(MediaType content_type, Source source) {
  return stream(content_type, StreamOptions(), std::move(source));
}

}  // namespace weir::http
