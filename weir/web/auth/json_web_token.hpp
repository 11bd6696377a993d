// JSON Web Tokens: keys and the verification of tokens that are signed with them (RFC 7519, RFC
// 7515, RFC 7517).
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/json/read.hpp"

namespace weir::http {

/// A JwtKey verifies the tokens of one algorithm.
struct JwtKey {
  /// The name of the algorithm: HS256, RS256, PS256, ES256, those with 384 and 512, or EdDSA.
  std::string algorithm;
  /// The shared secret of HS256 (at least 32 bytes; 48 for HS384, 64 for HS512), or a public key in
  /// PEM. Public keys need OpenSSL: a build of Weir without it throws for them.
  std::string key;
  /// The key id (`kid`) of the tokens; empty for tokens of any id.
  std::string id = {};
};

/// JwtOptions has the keys, and what a token must say.
struct JwtOptions {
  std::vector<JwtKey> keys = {};
  /// The text of a JWK set, `{"keys":[...]}`. A key without `alg` is bound to RS256, EdDSA, or the
  /// ES algorithm of its curve. Keys that are not for signatures, those of unknown types, and those
  /// that lack a member or do not fit their algorithm are left out (RFC 7517 §5).
  std::string key_set = {};
  std::string issuer = {};  ///< the `iss` of all tokens; empty for any
  /// One of them is in `aud`. If there is none, a token with `aud` is for another service, and is
  /// rejected (RFC 7519 §4.1.3).
  std::vector<std::string> audiences = {};
  bool any_audience = false;                   ///< true to accept tokens for other services too
  Duration leeway = std::chrono::seconds(30);  ///< allowed difference of the clocks
  /// True if a token without `exp` is rejected.
  bool require_expiry = true;
  std::size_t token_bytes_max = std::size_t{8} * 1024;
};

/// The claims of a token that was verified.
struct JwtClaims {
  std::string issuer = {};
  std::string subject = {};
  std::vector<std::string> audiences = {};
  std::optional<WallTime> expires = std::nullopt;
  std::optional<WallTime> issued = std::nullopt;
  std::string id = {};       ///< `jti`
  std::string payload = {};  ///< all claims as JSON

  /// Reads claims of the service: `claims.read<MyClaims>()->roles`. Other claims are skipped.
  /// Errors: those of json::read().
  template <class T>
  json::Read<T> read() const {
    return json::read<T>(payload, {.unknown_fields = json::UnknownFields::skip});
  }
};

/// The reason why a token is rejected, as a constant text.
using JwtError = std::string_view;

/// A JwtVerifier checks tokens in the compact serialization. The key alone decides the algorithm. A
/// token whose header names another one, such as "none", is rejected, and so is one with `crit`.
/// Copies share the keys.
/// Threads: any.
class JwtVerifier {
 public:
  /// Errors: throws std::invalid_argument with the reason for a key that is none, an unknown
  /// algorithm, a key of another kind than its algorithm, and if there is no key.
  explicit JwtVerifier(const JwtOptions& options);

  /// Replaces the keys by those of a JWK set, for all copies of this object. A program calls it
  /// when its issuer has published new keys. The other options stay.
  /// Errors: the reason why the text has no valid keys. The old keys then stay.
  std::expected<void, std::string> replace_keys(std::string_view key_set);

  /// Returns the claims of a token at the time `now`.
  /// Errors: the reason.
  std::expected<JwtClaims, JwtError> verify(std::string_view token, WallTime now) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::http
