// The id of a request in its response, so that a client can name the request in a report.
#pragma once

#include <string>
#include <utility>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// RequestIdOptions names the header.
struct RequestIdOptions {
  std::string header = "X-Request-Id";
};

/// The middleware that request_id() makes. It sends Request::id(), which is also the field
/// `request` of the log. Router::trust_id_header() takes the id of a client or a proxy; the server
/// makes all other ids.
/// Threads: any.
class RequestId {
 public:
  explicit RequestId(RequestIdOptions options = {}) : header_(std::move(options.header)) {}

  void after(Request& request, Response& response) const {
    if (const std::string id = request.id(); !id.empty()) response.set_header(header_, id);
  }

 private:
  std::string header_;
};

/// Returns the middleware for these options: `router.use(http::request_id())`.
inline RequestId request_id(RequestIdOptions options = {}) {
  return RequestId(std::move(options));
}

}  // namespace weir::http
