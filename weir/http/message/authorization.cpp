// The grammar of the Authorization header with a Bearer token (RFC 6750 §2.1), and its challenges.
#include "weir/http/message/authorization.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {
namespace {

constexpr std::string_view scheme = "Bearer";

bool is_of_token(char character) noexcept {
  const char lower = to_lower(character);
  const bool is_alphanumeric = (lower >= 'a' && lower <= 'z') || is_in(lower, CharClass::digit);
  return is_alphanumeric || std::string_view("-._~+/").contains(character);
}

/// Returns true for a b64token: at least one character, then any number of "=".
bool is_token68(std::string_view text) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), is_of_token);
  return end != text.begin() && std::all_of(end, text.end(), [](char each) { return each == '='; });
}

Response challenge_with(Status status, std::string_view challenge) {
  Response response = problem(status);
  response.set_header("WWW-Authenticate", challenge);
  return response;
}

}  // namespace

Response unauthorized(std::string_view challenge) {
  return challenge_with(Status::unauthorized, challenge);
}

std::expected<Bearer, Response> Bearer::from_request(const Request& request) {
  const auto credentials = request.header("Authorization");
  if (credentials && request.head().repeats("Authorization")) {
    return std::unexpected(challenge_with(Status::bad_request, "Bearer error=\"invalid_request\""));
  }
  std::string_view token = credentials.value_or("");
  const std::string_view name = token.substr(0, token.find(' '));
  if (!equals_ignoring_case(name, scheme)) return std::unexpected(unauthorized(scheme));
  token.remove_prefix(name.size());
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  if (!is_token68(token)) return std::unexpected(unauthorized(invalid_token));
  return Bearer{token};
}

}  // namespace weir::http
