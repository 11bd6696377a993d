// Opens any bytes as sealed cookies: none opens unless the keys have sealed it. Seals any bytes,
// which then open, and not after a change.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/web/cookies/cookie_keys.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::CookieKeys;
using weir::http::CookieProtection;

const CookieKeys& keys() {
  static const CookieKeys made =
      CookieKeys::from_secrets(std::vector<std::string>{std::string(32, 'a'), std::string(32, 'b')})
          .value();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::WallTime now(std::chrono::seconds(1'000'000));
  for (const auto how : {CookieProtection::signed_value, CookieProtection::encrypted_value}) {
    const ExactCopy copy(text);
    require(!keys().open(how, "a", copy.view(), now));
    const auto sealed = keys().seal(how, "a", text, now + std::chrono::seconds(1));
    if (!sealed) continue;
    require(keys().open(how, "a", *sealed, now) == text);
    require(!keys().open(how, "a", *sealed, now + std::chrono::seconds(1)));
    require(!keys().open(how, "b", *sealed, now));
    std::string changed = *sealed;
    char& one = changed[size % changed.size()];
    one = one == 'A' ? 'B' : 'A';
    require(!keys().open(how, "a", changed, now));
  }
  return 0;
}
