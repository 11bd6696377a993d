// Another body of a request until the end of a scope.
#pragma once

#include "weir/http/message/request.hpp"

namespace weir::http {

/// Gives the request another body until the end of a scope.
/// Lifetime: see Request::exchange_body().
class ScopedBody {
 public:
  ScopedBody(Request& request, BodySource& body) noexcept
      : request_(request), former_(request.exchange_body(body)) {}
  ScopedBody(const ScopedBody&) = delete;
  ScopedBody& operator=(const ScopedBody&) = delete;
  ~ScopedBody() { request_.exchange_body(former_); }

 private:
  Request& request_;
  BodySource& former_;
};

}  // namespace weir::http
