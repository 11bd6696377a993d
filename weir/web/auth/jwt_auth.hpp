// Authentication by JSON Web Tokens (RFC 7519) in the Authorization header.
#pragma once

#include <optional>
#include <utility>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/web/auth/json_web_token.hpp"

namespace weir::http {

/// The middleware that jwt_auth() makes. It sets the JwtClaims of the request, or answers 401. The
/// handlers of a `group<http::JwtClaims>()` take them as `const http::JwtClaims&`. A signature of a
/// public key takes some 30 to 200 µs to verify, on the core of the request.
/// Threads: any.
class JwtAuth {
 public:
  /// Errors: those of the constructor of JwtVerifier.
  explicit JwtAuth(const JwtOptions& options) : verifier_(options) {}
  explicit JwtAuth(JwtVerifier verifier) noexcept : verifier_(std::move(verifier)) {}

  std::optional<Response> before(Request& request) const;

 private:
  JwtVerifier verifier_;
};

/// Returns the middleware for these options:
/// `router.group<http::JwtClaims>("/api", http::jwt_auth({.key_set = text, .issuer =
/// "https://a"}))`.
/// Errors: those of the constructor of JwtAuth.
inline JwtAuth jwt_auth(const JwtOptions& options) {
  return JwtAuth(options);
}
/// Returns middleware that uses this verifier, whose keys the program replaces later.
inline JwtAuth jwt_auth(JwtVerifier verifier) noexcept {
  return JwtAuth(std::move(verifier));
}

}  // namespace weir::http
