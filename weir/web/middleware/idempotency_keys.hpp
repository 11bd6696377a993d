// Idempotency keys: a request that is sent twice has its effect once
// (draft-ietf-httpapi-idempotency-key-header-06).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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
  std::string header = "Idempotency-Key";  ///< its value has at most 255 characters; else 400
  std::vector<Method> methods = {Method::post, Method::patch};
  /// True if a request of these methods without a key is answered with 400.
  bool required = false;
  Duration lifetime = std::chrono::hours(24);  ///< time for which a key and its response are kept
  /// Number of keys of all owners, each at most about 600 bytes. A key that makes room for another
  /// one is forgotten, and its request runs again if it is repeated. So this should be more than
  /// the number of keys of one lifetime.
  std::size_t entries_max = 16 * 1024;
  std::size_t bytes_max = 16 * 1024 * 1024;  ///< bytes of all responses
  /// A larger response is not kept. A repeated request then gets 409.
  std::size_t response_bytes_max = 256 * 1024;
  /// Returns the owner of the keys of a request; std::nullopt if the request does not tell it.
  /// Equal keys of two owners are different. Without this function the owner is the first of these:
  /// the AuthenticatedUser, the issuer and the subject of the JwtClaims, or the headers
  /// Authorization and Cookie with the client's certificate. Set it if the clients of this service
  /// log in by another header, such as X-Api-Key, or if all clients are one owner. Set it also if
  /// clients change their cookies or sign each request anew. It returns only names that something
  /// has verified, because each has a part of the memory of its own.
  std::function<std::optional<std::string>(const Request& request)> user = {};
};

/// The middleware that idempotency_keys() makes. The first request with a key runs, and no other
/// request with that key runs during its lifetime. Its response is kept for all cores of the
/// process, and a later request with the same key gets a copy with `Idempotency-Replayed: true`,
/// without its Set-Cookie. A key belongs to one owner, to one host and to one request: another
/// method, target, body, Content-Type or Content-Encoding gets 422. A request whose owner is not
/// known gets 400.
///
/// A later request with the key depends on the first one:
///
/// - The first runs: 409 with Retry-After.
/// - It has a whole response below 500 that follows none of the next rules: the copy.
/// - It had no effect: the later request runs. The statuses 400, 401, 403 to 405, 408, 409, 411,
///   413, 415, 421, 422, 425 and 429 say so, and 503 with Retry-After.
/// - It has another response, such as 500, or one that is too large or streamed with bytes: 409.
/// - It was cancelled, by its client or its timeout, or its handler has thrown: 409.
///
/// A response with the error of a handler (Response::cause()) had no effect only if the error is
/// about the request, such as Errc::bad_input. A lost connection or a timeout leaves it open,
/// unless the response is 503 with Retry-After.
///
/// *Owners share the memory.* If there are too many keys, the owner with the most keys loses its
/// oldest ended key. It may be the owner of the new key. If there are too many bytes, the owner
/// with the most bytes loses its oldest response, and the key stays. So if N owners have keys, an
/// owner with at most entries_max / N keys and bytes_max / N bytes loses none to others. A running
/// key is never lost: an owner that has only running keys is passed over. A new key without room
/// gets 503.
///
/// Clients that differ only in Authorization and Cookie are one owner together, because a client
/// can invent these headers. They take no room from authenticated owners that have fewer keys. Any
/// such client can make the server forget the keys of the others. So let idempotency_keys() follow
/// the middleware that authenticates clients, or set IdempotencyOptions::user.
/// Threads: any.
class IdempotencyKeys {
 public:
  explicit IdempotencyKeys(IdempotencyOptions options);

  /// Answers a request.
  /// Cancel: passed on to the rest of the chain. The effect of the key is unknown then, unless the
  /// rest of the chain has completed a response that is kept.
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
