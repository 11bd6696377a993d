#include "weir/web/auth/jwt_auth.hpp"

#include <cassert>

#include "weir/http/message/authorization.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

std::optional<Response> JwtAuth::before(Request& request) const {
  auto bearer = Bearer::from_request(request);
  if (!bearer) return std::move(bearer.error());
  assert(request.loop() != nullptr && "the times of a token need the clock of a server");
  auto claims = verifier_.verify(bearer->token, request.loop()->platform().wall_time());
  if (!claims) return unauthorized(Bearer::invalid_token);
  request.set(std::move(*claims));
  return std::nullopt;
}

}  // namespace weir::http
