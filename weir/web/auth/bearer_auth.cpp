#include "weir/web/auth/bearer_auth.hpp"

#include <stdexcept>

#include "weir/http/message/authorization.hpp"
#include "weir/web/auth/detail/secret_digest.hpp"

namespace weir::http {

BearerAuth::BearerAuth(BearerAuthOptions options) : verify_(std::move(options.verify)) {
  if (options.users.empty() && !verify_) {
    throw std::invalid_argument("bearer_auth: there are no tokens and no function that knows them");
  }
  for (BearerUser& each : options.users) {
    if (each.token.empty()) throw std::invalid_argument("bearer_auth: a token is empty");
    users_.emplace_back(secret_digest(each.token), std::move(each.name));
  }
}

std::optional<std::string> BearerAuth::find_user(std::string_view token) const {
  if (const std::string* const name = find_name(users_, secret_digest(token))) return *name;
  return verify_ ? verify_(token) : std::nullopt;
}

std::optional<Response> BearerAuth::before(Request& request) const {
  auto bearer = Bearer::from_request(request);
  if (!bearer) return std::move(bearer.error());
  auto user = find_user(bearer->token);
  if (!user) return unauthorized(Bearer::invalid_token);
  request.set(AuthenticatedUser{std::move(*user)});
  return std::nullopt;
}

}  // namespace weir::http
