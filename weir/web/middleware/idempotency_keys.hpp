// Idempotency keys: a request that is sent twice has its effect once
// (draft-ietf-httpapi-idempotency-key-header-06).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class IdempotencyStore;

/// IdempotencyOptions says which requests have keys, and bounds the memory of their responses.
struct IdempotencyOptions {
  std::string header = "Idempotency-Key";
  std::vector<Method> methods = {Method::post, Method::patch};
  /// True if a request of these methods without a key is answered with 400.
  bool required = false;
  Duration lifetime = std::chrono::hours(24);  ///< time for which a response is kept
  std::size_t entries_max = 16 * 1024;         ///< number of keys
  std::size_t bytes_max = 16 * 1024 * 1024;    ///< bytes of all responses
  /// A larger response is not kept, so that a repeated request runs again.
  std::size_t response_bytes_max = 256 * 1024;
  /// Returns the user of a request. Equal keys of two users are different. The user is the headers
  /// Authorization and Cookie if there is no such function. Set it if clients of this service
  /// change their cookies between a request and its repetition.
  std::function<std::string(const Request& request)> user = {};
};

/// The middleware that idempotency_keys() makes. The first request with a key runs. Its response is
/// kept for all cores of the process, and a later request with the same key gets a copy with
/// `Idempotency-Replayed: true`, without its Set-Cookie. A key belongs to one request: another
/// method, target, body, Content-Type or Content-Encoding gets 422. While the first request runs,
/// others get 409 with Retry-After.
///
/// Only responses of a request that was done are kept: those below 500 except for 400, 401, 403 to
/// 405, 408, 409, 411, 413, 415, 421, 422, 425 and 429. Streamed ones are not kept either. The key
/// is then free again, also if the handler throws or is cancelled. If all keys belong to requests
/// that run, a new one gets 503.
/// Threads: any.
class IdempotencyKeys {
 public:
  explicit IdempotencyKeys(IdempotencyOptions options);

  /// Answers a request.
  /// Cancel: passed on to the rest of the chain; the key is free again.
  Task<Response> operator()(Request& request, Next next) const;

  const IdempotencyStore& store() const noexcept { return *store_; }

 private:
  Task<Response> answer(Request& request, Next next) const;

  std::shared_ptr<const IdempotencyOptions> options_;
  std::shared_ptr<IdempotencyStore> store_;
};

/// Returns the middleware for these options: `router.use(http::idempotency_keys())`.
inline IdempotencyKeys idempotency_keys(IdempotencyOptions options = {}) {
  return IdempotencyKeys(std::move(options));
}

}  // namespace weir::http
