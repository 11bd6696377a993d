// What a handler is given: one request, its head at once, its body as it arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/loop/work_unit.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Where a request's body comes from; implemented by the connection.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// The next bytes, valid until the next call; empty at the end, and from then on.
  /// Cancel: nothing is lost.
  virtual Task<Result<Bytes>> read() = 0;
  /// The rest of the body as one view, valid like the head: in place when it has arrived whole.
  /// Cancel: the rest stays to be read.
  virtual Task<Result<std::string_view>> read_all() = 0;
  virtual const Fields& trailers() const noexcept = 0;
  virtual os::Address peer() const = 0;
};

/// One request. All views that it gives are valid until its response has been sent or has failed.
/// Threads: those of its core. Lifetime: the server's; a handler takes it by reference.
class Request {
 public:
  Request(const RequestHead& head, BodySource& body, const WorkUnit* unit = nullptr) noexcept
      : head_(head), body_(body), unit_(unit) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Method method() const noexcept { return head_.method(); }
  std::string_view method_text() const noexcept { return head_.method_text(); }
  /// The path as it was sent, undecoded; "*" for OPTIONS *.
  std::string_view path() const noexcept { return head_.path(); }
  /// What stands behind the '?', undecoded; empty when there is none.
  std::string_view query_text() const noexcept { return head_.query(); }
  /// The decoded value of the first query parameter of that name, if there is one.
  std::optional<std::string> query(std::string_view name) const;
  /// host[:port] of an absolute target, else the Host field.
  std::string_view authority() const noexcept { return head_.authority(); }
  /// The value of the first field of that name, compared without case.
  std::optional<std::string_view> field(std::string_view name) const noexcept {
    return head_.field(name);
  }
  const RequestHead& head() const noexcept { return head_; }
  os::Address peer() const { return body_.peer(); }
  /// What tells it from all others of this service, in the logs too: a Logger adds it by itself to
  /// each record that a task of this request's handler writes. See Router::trust_id_field(). Empty
  /// where there is no server.
  std::string id() const;

  /// The whole body, or what read() left of it. Errors: a Refusal (body_too_large beyond the
  /// route's limit, body_timed_out, bad framing), Errc::end_of_stream or the connection's own when
  /// it is cut, Errc::cancelled; an incomplete body is always an error. See status_for().
  /// Cancel: the rest of the body stays to be read.
  Task<Result<std::string>> body();
  /// The same without a copy where it arrived in one piece. It may be asked for again.
  /// Cancel: as body().
  Task<Result<std::string_view>> body_view() { return body_.read_all(); }
  /// The next piece of the body, valid until the next call; empty at the end. Errors as body().
  /// Cancel: nothing is lost; the next call gives the piece.
  Task<Result<Bytes>> read() { return body_.read(); }
  /// Fields behind a chunked body; complete once read() has given the end.
  const Fields& trailers() const noexcept { return body_.trailers(); }

 private:
  const RequestHead& head_;
  BodySource& body_;
  const WorkUnit* unit_;
};

}  // namespace weir::http
