#include "weir/web/auth/json_web_token.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <variant>

#include "weir/base/text/detail/base64.hpp"
#include "weir/tls/crypto/detail/verification_key.hpp"

namespace weir::http {
namespace {

using tls::detail::SignatureAlgorithm;
using tls::detail::VerificationKey;

constexpr json::ReadOptions lenient{.unknown_fields = json::UnknownFields::skip, .depth_max = 16};

/// The members of a JSON object that matter here; others are skipped.
struct TokenHeader {
  std::string alg;
  std::optional<std::string> kid;
  std::optional<std::vector<std::string>> crit;
};
struct TokenClaims {
  std::optional<std::string> iss;
  std::optional<std::string> sub;
  std::optional<std::variant<std::string, std::vector<std::string>>> aud;
  std::optional<double> exp;
  std::optional<double> nbf;
  std::optional<double> iat;
  std::optional<std::string> jti;
};
struct JsonWebKey {
  std::string kty;
  std::optional<std::string> use;
  std::optional<std::string> alg;
  std::optional<std::string> kid;
  std::optional<std::string> crv;
  std::optional<std::string> n;
  std::optional<std::string> e;
  std::optional<std::string> x;
  std::optional<std::string> y;
  std::optional<std::string> k;
};
struct JsonWebKeySet {
  std::vector<JsonWebKey> keys;
};

[[noreturn]] void reject(std::string_view what, std::string_view which) {
  throw std::invalid_argument("jwt: " + std::string(what) + ": \"" + std::string(which) + "\"");
}

/// Decodes base64url; nullopt for any other text.
std::optional<std::string> decode(std::string_view text) {
  std::string bytes(base64_bytes_max(text.size()), '\0');
  const auto size = read_base64url(text, reinterpret_cast<std::byte*>(bytes.data()));
  if (!size) return std::nullopt;
  bytes.resize(*size);
  return bytes;
}

/// Decodes a member of a key.
std::string member(const std::optional<std::string>& text, const JsonWebKey& key) {
  auto bytes = decode(text.value_or(""));
  if (!bytes || bytes->empty()) reject("a key lacks a member", key.kid.value_or(key.kty));
  return std::move(*bytes);
}

/// A key that accepts the signatures of one algorithm.
struct BoundKey {
  std::string id;
  SignatureAlgorithm algorithm;
  VerificationKey key;
};

BoundKey bind_key(std::string id, std::string_view name, VerificationKey::Outcome key) {
  if (!key) reject(key.error(), id.empty() ? name : std::string_view(id));
  const auto algorithm = tls::detail::signature_algorithm(name);
  if (!algorithm) reject("an unknown algorithm", name);
  if (!key->accepts(*algorithm)) reject("the key is not one for its algorithm", name);
  return {std::move(id), *algorithm, std::move(*key)};
}

BoundKey bind_key(const JwtKey& key) {
  const bool is_secret = key.algorithm.starts_with("HS");
  return bind_key(key.id, key.algorithm,
                  is_secret ? VerificationKey::from_secret(to_bytes(key.key))
                            : VerificationKey::from_pem(key.key));
}

/// Returns the key of a JWK; nullopt for one that cannot verify signatures here (RFC 7517 §5).
std::optional<BoundKey> bind_key(const JsonWebKey& key) {
  using Curve = VerificationKey::Curve;
  const auto bound = [&](std::string_view usual, VerificationKey::Outcome made) {
    return bind_key(key.kid.value_or(""), key.alg ? std::string_view(*key.alg) : usual,
                    std::move(made));
  };
  if (key.use && *key.use != "sig") return std::nullopt;
  if (key.alg && !tls::detail::signature_algorithm(*key.alg)) return std::nullopt;
  if (key.kty == "RSA") {
    const std::string n = member(key.n, key);
    const std::string e = member(key.e, key);
    return bound("RS256", VerificationKey::rsa(to_bytes(n), to_bytes(e)));
  }
  if (key.kty == "oct") {
    const std::string secret = member(key.k, key);
    return bound("HS256", VerificationKey::from_secret(to_bytes(secret)));
  }
  if (key.kty == "OKP" && key.crv == "Ed25519") {
    const std::string x = member(key.x, key);
    return bound("EdDSA", VerificationKey::ed25519(to_bytes(x)));
  }
  if (key.kty != "EC") return std::nullopt;
  constexpr std::array<std::pair<std::string_view, Curve>, 3> curves{
      {{"P-256", Curve::p256}, {"P-384", Curve::p384}, {"P-521", Curve::p521}}};
  constexpr std::array<std::string_view, 3> names{"ES256", "ES384", "ES512"};
  const auto* const curve =
      std::ranges::find(curves, key.crv.value_or(""), &decltype(curves)::value_type::first);
  if (curve == curves.end()) return std::nullopt;
  const std::string x = member(key.x, key);
  const std::string y = member(key.y, key);
  return bound(names[static_cast<std::size_t>(curve - curves.begin())],
               VerificationKey::ec(curve->second, to_bytes(x), to_bytes(y)));
}

/// Adds the keys of a JWK set that can verify signatures here. A key that lacks a member, or whose
/// values do not fit, is left out, so that it does not keep the others from being replaced (RFC
/// 7517 §5).
void add_key_set(std::string_view text, std::vector<BoundKey>& keys) {
  const auto set = json::read<JsonWebKeySet>(text, lenient);
  if (!set) reject("the key set cannot be read", set.error().message());
  for (const JsonWebKey& each : set->keys) {
    try {
      if (auto key = bind_key(each)) keys.push_back(std::move(*key));
    } catch (const std::invalid_argument&) {
      continue;
    }
  }
}

constexpr double seconds_max = 9e9;  // in 2255; the difference of two times fits a Duration

/// Converts seconds since 1970, which may have a fraction (RFC 7519 §2).
/// Returns: nullopt for a time before 1970 or after 2255.
std::optional<WallTime> to_time(double seconds) noexcept {
  if (!(seconds >= 0 && seconds <= seconds_max)) return std::nullopt;
  return WallTime(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

std::vector<std::string> audiences_of(TokenClaims& claims) {
  if (!claims.aud) return {};
  if (auto* const one = std::get_if<std::string>(&*claims.aud)) return {std::move(*one)};
  return std::move(std::get<std::vector<std::string>>(*claims.aud));
}

/// The three parts of the compact serialization (RFC 7515 §7.1).
struct TokenParts {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;
};

std::optional<TokenParts> split(std::string_view token) noexcept {
  const std::size_t first = token.find('.');
  if (first == token.npos) return std::nullopt;
  const std::size_t second = token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos) return std::nullopt;
  return TokenParts{token.substr(0, first), token.substr(first + 1, second - first - 1),
                    token.substr(second + 1), token.substr(0, second)};
}

}  // namespace

/// The options, and the keys, which may change.
/// Threads: any.
struct JwtVerifier::State {
  using Keys = std::shared_ptr<const std::vector<BoundKey>>;
  State(const JwtOptions& of, std::vector<BoundKey> bound)
      : options(of), keys_(std::make_shared<const std::vector<BoundKey>>(std::move(bound))) {
    options.keys.clear();  // the secrets are in the keys
    options.key_set.clear();
  }
  Keys keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  void set_keys(std::vector<BoundKey> bound) {
    auto fresh = std::make_shared<const std::vector<BoundKey>>(std::move(bound));
    const std::lock_guard lock(mutex_);
    keys_.swap(fresh);
  }

  bool is_signed(const TokenHeader& header, const TokenParts& parts) const;
  std::expected<JwtClaims, JwtError> read_claims(std::string payload, WallTime now) const;
  JwtError check_times(const TokenClaims& claims, WallTime now) const;

  JwtOptions options;

 private:
  mutable std::mutex mutex_;  // guards the pointer
  Keys keys_;
};

JwtVerifier::JwtVerifier(const JwtOptions& options) {
  std::vector<BoundKey> keys;
  for (const JwtKey& each : options.keys) keys.push_back(bind_key(each));
  if (!options.key_set.empty()) add_key_set(options.key_set, keys);
  if (keys.empty()) throw std::invalid_argument("jwt: there is no key");
  state_ = std::make_shared<State>(options, std::move(keys));
}

std::expected<void, std::string> JwtVerifier::replace_keys(std::string_view key_set) {
  try {
    std::vector<BoundKey> keys;
    add_key_set(key_set, keys);
    if (keys.empty()) return std::unexpected("jwt: there is no key");
    state_->set_keys(std::move(keys));
    return {};
  } catch (const std::invalid_argument& error) {
    return std::unexpected(error.what());
  }
}

bool JwtVerifier::State::is_signed(const TokenHeader& header, const TokenParts& parts) const {
  const auto signature = decode(parts.signature);
  const auto algorithm = tls::detail::signature_algorithm(header.alg);
  if (!signature || !algorithm) return false;
  const Keys known = keys();
  return std::ranges::any_of(*known, [&](const BoundKey& each) {
    if (each.algorithm != *algorithm) return false;
    if (!each.id.empty() && header.kid && *header.kid != each.id) return false;
    return each.key.verify(each.algorithm, to_bytes(parts.signed_text), to_bytes(*signature));
  });
}

/// Returns the reason why the token is not valid now; empty if it is.
JwtError JwtVerifier::State::check_times(const TokenClaims& claims, WallTime now) const {
  const auto out_of_range = [](const std::optional<double>& each) {
    return each && !to_time(*each);
  };
  if (out_of_range(claims.exp) || out_of_range(claims.nbf) || out_of_range(claims.iat)) {
    return "a time is out of range";
  }
  if (!claims.exp && options.require_expiry) return "the token has no expiry";
  if (claims.exp && now - *to_time(*claims.exp) >= options.leeway) return "the token has expired";
  for (const auto& start : {claims.nbf, claims.iat}) {
    if (start && *to_time(*start) - now > options.leeway) return "the token is not valid yet";
  }
  return {};
}

std::expected<JwtClaims, JwtError> JwtVerifier::State::read_claims(std::string payload,
                                                                   WallTime now) const {
  auto claims = json::read<TokenClaims>(payload, lenient);
  if (!claims) return std::unexpected("the claims are malformed");
  // Many issuers write "never" as a time of the year 9999.
  if (claims->exp) claims->exp = std::min(*claims->exp, seconds_max);
  if (const JwtError error = check_times(*claims, now); !error.empty()) {
    return std::unexpected(error);
  }
  JwtClaims result;
  result.issuer = std::move(claims->iss).value_or("");
  result.subject = std::move(claims->sub).value_or("");
  result.id = std::move(claims->jti).value_or("");
  result.audiences = audiences_of(*claims);
  if (claims->exp) result.expires = to_time(*claims->exp);
  if (claims->iat) result.issued = to_time(*claims->iat);
  result.payload = std::move(payload);
  if (!options.issuer.empty() && result.issuer != options.issuer) {
    return std::unexpected("the issuer is another one");
  }
  const auto is_ours = [this](const std::string& each) {
    return std::ranges::find(options.audiences, each) != options.audiences.end();
  };
  const bool has_audience = claims->aud.has_value() || !options.audiences.empty();
  if (has_audience && !options.any_audience && !std::ranges::any_of(result.audiences, is_ours)) {
    return std::unexpected("the audience is another one");
  }
  return result;
}

std::expected<JwtClaims, JwtError> JwtVerifier::verify(std::string_view token, WallTime now) const {
  if (token.size() > state_->options.token_bytes_max)
    return std::unexpected("the token is too long");
  const auto parts = split(token);
  if (!parts) return std::unexpected("the token is malformed");
  const auto header_text = decode(parts->header);
  if (!header_text) return std::unexpected("the token is malformed");
  const auto header = json::read<TokenHeader>(*header_text, lenient);
  if (!header || header->crit) return std::unexpected("the header is not supported");
  if (!state_->is_signed(*header, *parts)) return std::unexpected("no key has signed the token");
  auto payload = decode(parts->payload);
  if (!payload) return std::unexpected("the token is malformed");
  return state_->read_claims(std::move(*payload), now);
}

}  // namespace weir::http
