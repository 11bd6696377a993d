// The user that basic_auth() and bearer_auth() have found.
#pragma once

#include <string>

namespace weir::http {

/// An AuthenticatedUser is a value of the request. The handlers of a
/// `group<http::AuthenticatedUser>()` take it as `const http::AuthenticatedUser&`.
struct AuthenticatedUser {
  std::string name;
};

}  // namespace weir::http
