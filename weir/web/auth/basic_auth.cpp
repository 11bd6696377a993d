#include "weir/web/auth/basic_auth.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

#include "weir/base/text/detail/base64.hpp"
#include "weir/http/message/authorization.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/auth/detail/secret_digest.hpp"

namespace weir::http {
namespace {

constexpr char default_challenge[] = "Basic realm=\"service\", charset=\"UTF-8\"";

/// Returns the digest of a name and a password. A name has no colon (RFC 7617 §2).
SecretDigest digest_of(std::string_view name, std::string_view password) {
  return secret_digest(std::string(name).append(":").append(password));
}

/// Returns true if the list has the digest. All are compared, so that the time does not tell the
/// place in the list.
bool has_digest(std::span<const SecretDigest> list, const SecretDigest& digest) noexcept {
  bool known = false;
  for (const SecretDigest& each : list) known |= is_same_secret(each, digest);
  return known;
}

/// Returns the credentials of the only Authorization header; nullopt if there are several.
std::optional<std::string_view> only_authorization(const RequestHead& head) noexcept {
  const auto found = head.header("Authorization");
  if (found && head.repeats("Authorization")) return std::nullopt;
  return found.value_or("");
}

std::expected<Basic, Response> read_basic(const Request& request, std::string_view challenge) {
  const auto header = only_authorization(request.head());
  if (!header) return std::unexpected(problem(Status::bad_request));
  std::string_view text = *header;
  const std::string_view scheme = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.find_first_not_of(' ', scheme.size()), text.size()));
  if (!equals_ignoring_case(scheme, "Basic")) return std::unexpected(unauthorized(challenge));
  std::string plain(base64_bytes_max(text.size()), '\0');
  const auto size = read_base64(text, reinterpret_cast<std::byte*>(plain.data()));
  plain.resize(size.value_or(0));
  const std::size_t colon = plain.find(':');
  const bool has_control = std::ranges::any_of(
      plain, [](char each) { return static_cast<unsigned char>(each) < ' ' || each == '\x7f'; });
  if (!size || colon == plain.npos || has_control) return std::unexpected(unauthorized(challenge));
  return Basic{plain.substr(0, colon), plain.substr(colon + 1)};
}

}  // namespace

std::expected<Basic, Response> Basic::from_request(const Request& request) {
  return read_basic(request, default_challenge);
}

BasicAuth::BasicAuth(BasicAuthOptions options) : verify_(std::move(options.verify)) {
  const auto is_plain = [](char each) {
    return each >= ' ' && each <= '~' && each != '"' && each != '\\';
  };
  if (!std::ranges::all_of(options.realm, is_plain)) {
    throw std::invalid_argument("basic_auth: a realm has no quotes and no control characters");
  }
  if (options.users.empty() && options.tokens.empty() && !verify_) {
    throw std::invalid_argument("basic_auth: there are no users and no function that knows them");
  }
  challenge_ = "Basic realm=\"" + options.realm + "\", charset=\"UTF-8\"";
  for (const Basic& each : options.users) {
    if (each.name.contains(':')) {
      throw std::invalid_argument("basic_auth: a name has no colon: \"" + each.name + "\"");
    }
    users_.push_back(digest_of(each.name, each.password));
  }
  for (BearerUser& each : options.tokens) {
    if (each.token.empty()) throw std::invalid_argument("basic_auth: a token is empty");
    tokens_.emplace_back(secret_digest(each.token), std::move(each.name));
  }
}

std::optional<std::string> BasicAuth::find_user(const Basic& basic) const {
  const bool is_user = has_digest(users_, digest_of(basic.name, basic.password));
  const std::string* const token_user = find_name(tokens_, secret_digest(basic.password));
  if (!is_user && token_user != nullptr) return *token_user;
  if (is_user || (verify_ && verify_(basic.name, basic.password))) return basic.name;
  return std::nullopt;
}

std::optional<Response> BasicAuth::before(Request& request) const {
  auto basic = read_basic(request, challenge_);
  if (!basic) return std::move(basic.error());
  auto user = find_user(*basic);
  if (!user) return unauthorized(challenge_);
  request.set(AuthenticatedUser{std::move(*user)});
  return std::nullopt;
}

}  // namespace weir::http
