// What a server does for a request in progress.
#pragma once

#include "weir/base/result.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/task.hpp"

namespace weir {
class Scope;
}  // namespace weir

namespace weir::http::detail {

/// A RequestOwner does for a Request what concerns more than its body.
/// Threads: those of the request.
class RequestOwner {
 public:
  RequestOwner() = default;
  RequestOwner(const RequestOwner&) = delete;
  RequestOwner& operator=(const RequestOwner&) = delete;

  /// See Request::scope().
  virtual Scope& scope() = 0;
  /// See Request::send_interim().
  /// Cancel: not affected; a part of a head would spoil the response behind it.
  virtual Task<Result<>> send_interim(Status status, const Headers& headers) = 0;

 protected:
  ~RequestOwner() = default;
};

}  // namespace weir::http::detail
