#include "weir/web/auth/bearer_auth.hpp"

#include <span>
#include <stdexcept>

#include "weir/base/text/detail/constant_time.hpp"
#include "weir/http/message/authorization.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"

namespace weir::http {
namespace {

std::array<std::uint8_t, 32> digest_of(std::string_view token) noexcept {
  std::array<std::uint8_t, 32> digest;
  tls::detail::digest(tls::detail::Hash::sha_256, to_bytes(token), digest);
  return digest;
}

}  // namespace

BearerAuth::BearerAuth(BearerAuthOptions options) : verify_(std::move(options.verify)) {
  if (options.users.empty() && !verify_) {
    throw std::invalid_argument("bearer_auth: there are no tokens and no function that knows them");
  }
  for (BearerUser& each : options.users) {
    if (each.token.empty()) throw std::invalid_argument("bearer_auth: a token is empty");
    users_.emplace_back(digest_of(each.token), std::move(each.name));
  }
}

std::optional<std::string> BearerAuth::find_user(std::string_view token) const {
  const auto digest = digest_of(token);
  const std::string* name = nullptr;
  for (const auto& [known, user] : users_) {
    // All are compared, so that the time does not tell the place of a token in the list.
    if (constant_time_equal(std::as_bytes(std::span(known)), std::as_bytes(std::span(digest)))) {
      name = &user;
    }
  }
  if (name != nullptr) return *name;
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
