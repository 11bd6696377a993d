// Tests of the verification of JSON Web Tokens.
#include "weir/web/auth/json_web_token.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/text/detail/base64.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/web/test/signed_tokens.hpp"

namespace weir::http::json_web_token_test {
namespace {

using namespace signed_tokens;

constexpr std::string_view secret = "0123456789abcdef0123456789abcdef";
constexpr std::string_view hs256 = R"({"alg":"HS256"})";
constexpr WallTime now(std::chrono::seconds(1'300'819'379));  // a second before the tokens expire

/// Returns a token that is signed by HMAC with SHA-256, whatever its header says.
std::string token(std::string_view header, std::string_view payload,
                  std::string_view key = secret) {
  std::string text = to_base64url(to_bytes(header)) + "." + to_base64url(to_bytes(payload));
  tls::detail::Hmac hmac(tls::detail::Hash::sha_256, to_bytes(key));
  hmac.update(text);
  std::array<std::uint8_t, 32> digest;
  hmac.finish(digest);
  return text + "." + to_base64url(std::as_bytes(std::span(digest)));
}

JwtOptions with_secret() {
  return {.keys = {{.algorithm = "HS256", .key = std::string(secret)}}};
}
/// Returns "" for a token that is valid, else the reason.
std::string check(const JwtOptions& options, std::string_view text, WallTime time = now) {
  const auto claims = JwtVerifier(options).verify(text, time);
  return std::string(claims ? "" : claims.error());
}
std::string check_claims(const JwtOptions& options, std::string_view payload, WallTime time = now) {
  return check(options, token(hs256, payload), time);
}

TEST(JwtVerifier, AcceptsTheSignaturesOfAKeySet) {
  const JwtOptions options{.key_set = std::string(key_set), .audiences = {"notes"}};
  for (const std::string_view text : {rs256, es256, es384, eddsa}) {
    const auto claims = JwtVerifier(options).verify(text, now);
    ASSERT_TRUE(claims) << claims.error() << " " << text;
    EXPECT_EQ(claims->issuer, "joe");
    EXPECT_EQ(claims->audiences, (std::vector<std::string>{"a", "notes"}));
    EXPECT_EQ(claims->expires, now + 1s);
    std::string changed(text);
    changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
    EXPECT_NE(check(options, changed), "");
  }
  EXPECT_EQ(check(options, ps256), "no key has signed the token") << "the key is bound to RS256";
}

TEST(JwtVerifier, AcceptsTheSignaturesOfAKeyInPem) {
  const auto with_key = [](const JwtKey& key, std::string_view text) {
    return check({.keys = {key}, .any_audience = true}, text);
  };
  const std::string pem(rsa_pem);
  constexpr std::string_view unsigned_text = "no key has signed the token";
  EXPECT_EQ(with_key({"RS256", pem}, rs256), "");
  EXPECT_EQ(with_key({"PS256", pem}, ps256), "");
  EXPECT_EQ(with_key({"PS256", pem}, rs256), unsigned_text);
  EXPECT_EQ(with_key({"RS256", pem, "rsa"}, rs256), "");
  EXPECT_EQ(with_key({"RS256", pem, "other"}, rs256), unsigned_text);
}

TEST(JwtVerifier, TheKeyDecidesTheAlgorithm) {
  const std::string payload = R"({"exp":1300819380})";
  EXPECT_EQ(check(with_secret(), token(hs256, payload)), "");
  for (const char* header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":""})", R"({"alg":"hs256"})",
        R"({"alg":"HS384"})", R"({"alg":"HS512"})", R"({"alg":"RS256"})", R"({"alg":null})", "{}",
        R"({"alg":["HS256"]})", R"({"alg":"HS256","alg":"none"})"}) {
    EXPECT_NE(check(with_secret(), token(header, payload)), "") << header;
  }
  const std::string unsigned_token = to_base64url(to_bytes(std::string_view(R"({"alg":"none"})"))) +
                                     "." + to_base64url(to_bytes(payload)) + ".";
  EXPECT_NE(check(with_secret(), unsigned_token), "");
  // The text of a public key is no secret.
  EXPECT_NE(check({.keys = {{"RS256", std::string(rsa_pem)}}}, token(hs256, payload, rsa_pem)), "");
  EXPECT_NE(check({.key_set = std::string(key_set)}, token(hs256, payload, key_set)), "");
}

TEST(JwtVerifier, TheIdSelectsTheKey) {
  const std::string other = "another secret of 32 bytes......";
  const JwtOptions options{.keys = {{"HS256", std::string(secret), "a"}, {"HS256", other, "b"}}};
  const std::string payload = R"({"exp":1300819380})";
  const auto with_id = [&](std::string_view id, std::string_view key) {
    return check(options,
                 token(R"({"alg":"HS256","kid":")" + std::string(id) + "\"}", payload, key));
  };
  EXPECT_EQ(with_id("a", secret), "");
  EXPECT_EQ(with_id("b", other), "");
  EXPECT_NE(with_id("a", other), "");
  EXPECT_NE(with_id("c", secret), "");
  EXPECT_EQ(check(options, token(hs256, payload, other)), "")
      << "without an id, all keys are tried";
}

TEST(JwtVerifier, RejectsTokensOfAnotherForm) {
  const std::string good = token(hs256, R"({"exp":1300819380})");
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b"), good + ".",
        good + ".a", "." + good, good + "=", good + "A", good.substr(0, good.size() - 1),
        good.substr(0, good.rfind('.') + 1), " " + good, good + "\n",
        good.substr(0, 3) + "+" + good.substr(4)}) {
    EXPECT_NE(check(with_secret(), text), "") << text;
  }
  EXPECT_EQ(check(with_secret(),
                  token(R"({"alg":"HS256","typ":"JWT","x":{"y":[1]}})", R"({"exp":1300819380})")),
            "");
  EXPECT_EQ(check(with_secret(),
                  token(R"({"alg":"HS256","crit":["b64"],"b64":false})", R"({"exp":1300819380})")),
            "the header is not supported");
  EXPECT_EQ(check(with_secret(), token(hs256, R"(["exp"])")), "the claims are malformed");
  EXPECT_EQ(check(with_secret(), token(hs256, R"({"exp":"1300819380"})")),
            "the claims are malformed");
}

TEST(JwtVerifier, LimitsTheSizeOfAToken) {
  const std::string large = R"({"exp":1300819380,"x":")" + std::string(9000, 'x') + "\"}";
  EXPECT_EQ(check_claims(with_secret(), large), "the token is too long");
  JwtOptions more = with_secret();
  more.token_bytes_max = 16 * 1024;
  EXPECT_EQ(check_claims(more, large), "");
  std::string deep = R"({"exp":1300819380,"x":)" + std::string(1000, '[');
  EXPECT_EQ(check_claims(more, deep + std::string(1000, ']') + "}"), "the claims are malformed");
}

TEST(JwtVerifier, ChecksTheTimes) {
  JwtOptions options = with_secret();
  options.leeway = 10s;
  EXPECT_EQ(check_claims(options, R"({"exp":1300819369.5})"), "");
  EXPECT_EQ(check_claims(options, R"({"exp":1300819369})"), "the token has expired");
  EXPECT_EQ(check_claims(options, R"({"sub":"ann"})"), "the token has no expiry");
  EXPECT_EQ(check_claims(options, R"({"exp":null})"), "the token has no expiry");
  EXPECT_EQ(check_claims(options, R"({"exp":1300819380,"nbf":1300819389})"), "");
  EXPECT_EQ(check_claims(options, R"({"exp":1300819380,"nbf":1300819390})"),
            "the token is not valid yet");
  EXPECT_EQ(check_claims(options, R"({"exp":1300819380,"iat":1300819390})"),
            "the token is not valid yet");
  for (const char* time : {"-1e300", "1e999", "-9e9"}) {
    EXPECT_NE(check_claims(options, "{\"exp\":" + std::string(time) + "}"), "") << time;
  }
  for (const char* never : {"8999999999", "9e9", "253402300799", "1e300"}) {
    EXPECT_EQ(check_claims(options, "{\"exp\":" + std::string(never) + "}"), "") << never;
  }
  EXPECT_EQ(check_claims(options, R"({"exp":1300819380,"nbf":253402300799})"),
            "a time is out of range");
  options.require_expiry = false;
  EXPECT_EQ(check_claims(options, R"({"sub":"ann"})"), "");
  EXPECT_EQ(check_claims(options, R"({"exp":1300819369})"), "the token has expired");
}

TEST(JwtVerifier, ChecksIssuerAndAudience) {
  JwtOptions options = with_secret();
  options.issuer = "https://a.test";
  options.audiences = {"notes", "chat"};
  const auto check_both = [&](std::string_view issuer, std::string_view audience) {
    return check_claims(options, R"({"exp":1300819380,"iss":)" + std::string(issuer) +
                                     ",\"aud\":" + std::string(audience) + "}");
  };
  EXPECT_EQ(check_both(R"("https://a.test")", R"("notes")"), "");
  EXPECT_EQ(check_both(R"("https://a.test")", R"(["x","chat"])"), "");
  EXPECT_EQ(check_both(R"("https://b.test")", R"("notes")"), "the issuer is another one");
  EXPECT_EQ(check_both("null", R"("notes")"), "the issuer is another one");
  EXPECT_EQ(check_both(R"("https://a.test")", R"("note")"), "the audience is another one");
  EXPECT_EQ(check_both(R"("https://a.test")", "[]"), "the audience is another one");
  EXPECT_EQ(check_both(R"("https://a.test")", "null"), "the audience is another one");
  EXPECT_NE(check_both(R"("https://a.test")", "7"), "");
}

TEST(JwtVerifier, RejectsATokenForAnotherServiceByDefault) {
  JwtOptions options = with_secret();
  EXPECT_EQ(check_claims(options, R"({"exp":1300819380})"), "");
  for (const char* audience : {R"("notes")", R"(["notes"])", "[]"}) {
    const std::string claims = R"({"exp":1300819380,"aud":)" + std::string(audience) + "}";
    EXPECT_EQ(check_claims(options, claims), "the audience is another one") << audience;
    JwtOptions any = options;
    any.any_audience = true;
    EXPECT_EQ(check_claims(any, claims), "") << audience;
  }
}

TEST(JwtVerifier, ReplacesItsKeys) {
  JwtOptions options = with_secret();
  options.any_audience = true;
  JwtVerifier verifier(options);
  const JwtVerifier copy = verifier;
  EXPECT_FALSE(copy.verify(es256, now));
  EXPECT_TRUE(verifier.replace_keys(key_set));
  EXPECT_TRUE(copy.verify(es256, now));
  EXPECT_FALSE(copy.verify(token(hs256, R"({"exp":1300819380})"), now));
  EXPECT_EQ(verifier.replace_keys(R"({"keys":[]})").error(), "jwt: there is no key");
  EXPECT_FALSE(verifier.replace_keys("{"));
  EXPECT_TRUE(copy.verify(es256, now)) << "the old keys stay";
}

TEST(JwtVerifier, LeavesOutTheKeysThatDoNotFit) {
  const std::string good(
      key_set.substr(key_set.find('[') + 1, key_set.rfind(']') - key_set.find('[') - 1));
  for (const std::string odd :
       {R"({"kty":"RSA","kid":"x"})", R"({"kty":"oct","k":"AAAA"})",
        R"({"kty":"EC","crv":"P-256","alg":"ES384","x":"AA","y":"AA"})", R"({"kty":"new"})"}) {
    JwtOptions options = with_secret();
    options.any_audience = true;
    JwtVerifier verifier(options);
    EXPECT_TRUE(verifier.replace_keys("{\"keys\":[" + odd + "," + good + "]}")) << odd;
    EXPECT_TRUE(verifier.verify(es256, now)) << odd;
  }
}

struct Roles {
  std::vector<std::string> roles;
  int level = 1;
};

TEST(JwtVerifier, GivesAllClaims) {
  const auto claims = JwtVerifier(with_secret())
                          .verify(token(hs256, R"({"exp":1300819380,"iat":1300819370,"sub":"ann",)"
                                               R"("jti":"7","roles":["admin"]})"),
                                  now);
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->subject, "ann");
  EXPECT_EQ(claims->id, "7");
  EXPECT_EQ(claims->issued, now - 9s);
  const auto own = claims->read<Roles>();
  ASSERT_TRUE(own);
  EXPECT_EQ(own->roles, std::vector<std::string>{"admin"});
  EXPECT_EQ(own->level, 1);
}

TEST(JwtVerifier, RejectsKeysThatDoNotFit) {
  const auto rejects = [](const JwtOptions& options) {
    EXPECT_THROW(JwtVerifier{options}, std::invalid_argument);
  };
  rejects({});
  rejects({.keys = {{"HS256", "short"}}});
  rejects({.keys = {{"HS384", std::string(secret)}}});
  rejects({.keys = {{"none", std::string(secret)}}});
  rejects({.keys = {{"RS256", std::string(secret)}}});
  rejects({.keys = {{"ES256", std::string(rsa_pem)}}});
  rejects({.keys = {{"EdDSA", std::string(rsa_pem)}}});
  for (const char* set :
       {"", "{}", "[]", R"({"keys":[]})", R"({"keys":[{"kty":"RSA"}]})",
        R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})",
        R"({"keys":[{"kty":"oct","k":"AAAA"}]})", R"({"keys":[{"kty":"oct","k":"!"}]})",
        R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]})",
        R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})", R"({"keys":[{"kty":"new"}]})",
        R"({"keys":[{"kty":"OKP","crv":"Ed25519","alg":"HS256",)"
        R"("x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})"}) {
    rejects({.key_set = set});
  }
}

}  // namespace
}  // namespace weir::http::json_web_token_test
