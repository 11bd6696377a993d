// Basic authentication by a name and a password (RFC 7617).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/web/auth/authenticated_user.hpp"
#include "weir/web/auth/bearer_auth.hpp"

namespace weir::http {

/// The name and the password of a request with `Authorization: Basic`. A handler takes a Basic by
/// value, or a from_request() reads it, for example in middleware that waits for a store.
struct Basic {
  std::string name;
  std::string password;

  /// Returns: the credentials; else 401 for a request without valid ones, and 400 for one with
  /// several Authorization headers.
  static std::expected<Basic, Response> from_request(const Request& request);
};

/// BasicAuthOptions has the users, or the function that knows them.
struct BasicAuthOptions {
  std::string realm = "service";  ///< the name that a browser shows
  /// All users. Only digests of their passwords are kept, and all are compared in constant time.
  std::vector<Basic> users = {};
  /// Tokens, which clients send as the password. A token tells its user: the name that a client
  /// sends beside it is ignored. Tokens are kept and compared like the passwords.
  std::vector<BearerUser> tokens = {};
  /// Returns true if there is such a user. It is called for users that are not in the list, on the
  /// core of the request, and must not wait. It compares a password in constant time whatever the
  /// sizes are, for example its digest.
  std::function<bool(std::string_view name, std::string_view password)> verify = {};
};

/// The middleware that basic_auth() makes. It sets an AuthenticatedUser, or answers 401. Passwords
/// cross the network as they are, so it needs https.
/// Threads: any.
class BasicAuth {
 public:
  /// Errors: throws std::invalid_argument for a realm with quotes or control characters, for a name
  /// with a colon, and for an empty token. It also does if no user, no token and no function is
  /// given.
  explicit BasicAuth(BasicAuthOptions options);

  std::optional<Response> before(Request& request) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  /// Returns the name that the credentials prove; std::nullopt if they prove none.
  std::optional<std::string> find_user(const Basic& basic) const;

  std::string challenge_;
  std::vector<Digest> users_;
  std::vector<std::pair<Digest, std::string>> tokens_;
  std::function<bool(std::string_view name, std::string_view password)> verify_;
};

/// Returns the middleware for these options:
/// `router.group<http::AuthenticatedUser>("/admin", http::basic_auth({.users = {{"ann",
/// secret}}}))`.
/// Errors: those of the constructor of BasicAuth.
inline BasicAuth basic_auth(BasicAuthOptions options) {
  return BasicAuth(std::move(options));
}

}  // namespace weir::http
