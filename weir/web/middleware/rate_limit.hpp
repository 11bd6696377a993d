// A limit of the requests of each client: a token bucket for each key.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/sync/rate_limiter.hpp"

namespace weir::http {

/// The cores that share the buckets of a rate limit.
enum class RateScope : std::uint8_t {
  all_cores,  ///< One bucket for all cores, exact. Cores may wait for each other for some
              ///< nanoseconds.
  /// A bucket for each core, with its share of the rate. A client whose connections are on one core
  /// gets only this share.
  per_core,
};

/// The headers that tell a client its limit. Of several limits around a request, they tell the one
/// with the fewest tokens left, and with RateScope::per_core its share of one core.
enum class RateHeaders : std::uint8_t {
  none,
  /// RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, which many clients know.
  separate,
  /// RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-10).
  structured,
};

/// RateLimitOptions describes the buckets and their keys.
struct RateLimitOptions {
  /// 100 requests per minute, and at most 50 together.
  RateLimit limit = {.tokens = 100, .per = std::chrono::minutes(1), .burst = 50};
  RateScope scope = RateScope::all_cores;
  /// The number of keys whose buckets are kept, of 16 bytes each; for RateScope::per_core on each
  /// core. A key for which there is no room replaces one that has used less of its limit.
  std::size_t keys_max = 64 * 1024;
  /// The name of a header whose value is the key, such as "X-Api-Key". A request without it has its
  /// address as the key. Clients can send any value, so this belongs behind authentication.
  std::string header = {};
  /// Returns the key of a request; std::nullopt for a request without a limit. It replaces
  /// `header`.
  std::function<std::optional<std::string>(const Request& request)> key = {};
  /// The bits of an address that are the key. One client usually has a whole IPv6 network of 64
  /// bits.
  unsigned ipv4_bits = 32;
  unsigned ipv6_bits = 64;
  RateHeaders headers = RateHeaders::separate;
};

/// The middleware that rate_limit() makes. It answers 429 with Retry-After to a client that has
/// used its tokens. The key of a request is client_address(), unless the options name another.
/// Threads: any.
class RequestRateLimit {
 public:
  /// Errors: throws std::invalid_argument for a limit that RateLimiter::check() rejects.
  explicit RequestRateLimit(RateLimitOptions options);
  RequestRateLimit(RequestRateLimit&& other) noexcept;
  ~RequestRateLimit();

  std::optional<Response> before(Request& request) const;
  void after(Request& request, Response& response) const;

  /// Returns the bytes that the buckets of all cores occupy at most, for this number of cores.
  std::size_t memory_bound(std::size_t cores) const noexcept;

 private:
  class Buckets;
  std::unique_ptr<Buckets> buckets_;
};

/// Returns the middleware for these options: `router.use(http::rate_limit())`.
/// Errors: those of the constructor of RequestRateLimit.
inline RequestRateLimit rate_limit(RateLimitOptions options = {}) {
  return RequestRateLimit(std::move(options));
}

}  // namespace weir::http
