// Reads any bytes as the header and the claims of a JSON Web Token, signed and unsigned, and as an
// Authorization header. A token is valid only if its key has signed it and its times fit.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/base/text/detail/base64.hpp"
#include "weir/http/message/authorization.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/web/auth/basic_auth.hpp"
#include "weir/web/auth/json_web_token.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
namespace http = weir::http;

constexpr std::string_view secret = "0123456789abcdef0123456789abcdef";
constexpr weir::WallTime now(std::chrono::seconds(1'000'000'000));

std::string sign(std::string text) {
  weir::tls::detail::Hmac hmac(weir::tls::detail::Hash::sha_256, weir::to_bytes(secret));
  hmac.update(text);
  std::array<std::uint8_t, 32> digest;
  hmac.finish(digest);
  return text + "." + weir::to_base64url(std::as_bytes(std::span(digest)));
}

const http::JwtVerifier& verifier() {
  static const http::JwtVerifier made(http::JwtOptions{
      .keys = {{.algorithm = "HS256", .key = std::string(secret)}}, .issuer = "a"});
  return made;
}

/// Verifies a token whose signature is that of the key.
void check_signed(std::string_view header, std::string_view claims) {
  const std::string token = sign(weir::to_base64url(weir::to_bytes(header)) + "." +
                                 weir::to_base64url(weir::to_bytes(claims)));
  const ExactCopy copy(token);
  const auto found = verifier().verify(copy.view(), now);
  if (!found) return;
  require(header.contains("HS256"));
  require(found->issuer == "a" && found->expires.has_value());
  require(*found->expires > now - std::chrono::seconds(30));
  require(found->payload == claims);
  std::string changed = token;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
  require(!verifier().verify(changed, now));
}

void check_header(std::string_view value) {
  for (const char each : value) {
    if (static_cast<unsigned char>(each) < ' ' || each == '\x7f') return;
  }
  http::TextRequest request("GET /", {}, "Authorization: " + std::string(value) + "\r\n");
  if (const auto basic = http::Basic::from_request(request.request())) {
    require(!basic->name.contains(':'));
    require(basic->name.size() + basic->password.size() < value.size());
  }
  if (const auto bearer = http::Bearer::from_request(request.request())) {
    require(!bearer->token.empty() && !bearer->token.contains(' '));
    require(!verifier().verify(bearer->token, now));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ExactCopy copy(text);
  require(!verifier().verify(copy.view(), now));
  const std::string_view header = text.substr(0, text.find('\n'));
  const std::string_view rest = text.substr(std::min(header.size() + 1, text.size()));
  check_signed(header, rest);
  check_signed(R"({"alg":"HS256"})", text);
  if (text.size() < 4000) check_header(header);
  return 0;
}
