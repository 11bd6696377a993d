// Bearer authentication by tokens that the service knows (RFC 6750).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/web/auth/authenticated_user.hpp"

namespace weir::http {

/// A token and the name of its user.
struct BearerUser {
  std::string token;
  std::string name;
};

/// BearerAuthOptions has the tokens, or the function that knows them.
struct BearerAuthOptions {
  /// All tokens. Only digests are kept, and all are compared in constant time.
  std::vector<BearerUser> users = {};
  /// Returns the name of the user of a token; std::nullopt if there is none. It is called for
  /// tokens that are not in the list, on the core of the request, and must not wait.
  std::function<std::optional<std::string>(std::string_view token)> verify = {};
};

/// The middleware that bearer_auth() makes. It sets an AuthenticatedUser, or answers 401. For JSON
/// Web Tokens see jwt_auth().
/// Threads: any.
class BearerAuth {
 public:
  /// Errors: throws std::invalid_argument if there are no tokens and no function, or for an empty
  /// token.
  explicit BearerAuth(BearerAuthOptions options);

  std::optional<Response> before(Request& request) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  std::optional<std::string> find_user(std::string_view token) const;

  std::vector<std::pair<Digest, std::string>> users_;
  std::function<std::optional<std::string>(std::string_view token)> verify_;
};

/// Returns the middleware for these options.
/// Errors: those of the constructor of BearerAuth.
inline BearerAuth bearer_auth(BearerAuthOptions options) {
  return BearerAuth(std::move(options));
}

}  // namespace weir::http
