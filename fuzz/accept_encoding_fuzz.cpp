// Parses any bytes as Accept-Encoding headers and checks the chosen coding.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/web/encoding/accept_encoding.hpp"

namespace {

using weir::fuzz::require;
using weir::http::AcceptEncoding;
using weir::http::ContentCoding;

void check(const AcceptEncoding& accept) {
  constexpr std::array offered{ContentCoding::brotli, ContentCoding::zstd, ContentCoding::gzip};
  const ContentCoding chosen = accept.choose(offered);
  const int quality = accept.quality(chosen);
  require(quality >= 0 && quality <= 1000);
  require(chosen == ContentCoding::identity || quality > 0);
  for (const ContentCoding each : offered) {
    require(accept.quality(each) <= quality || chosen == ContentCoding::identity);
  }
  require(accept.choose({}) == ContentCoding::identity);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The address sanitizer reports a read beyond the end of this copy.
  const weir::fuzz::ExactCopy copy({reinterpret_cast<const char*>(data), size});
  const std::string_view text = copy.view();
  AcceptEncoding whole;
  whole.add(text);
  check(whole);
  // Two headers mean the same as one with both lists (RFC 9110 §5.3).
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return 0;
  AcceptEncoding split;
  split.add(text.substr(0, comma));
  split.add(text.substr(comma + 1));
  check(split);
  for (std::size_t each = 0; each < weir::http::content_codings; ++each) {
    const auto coding = static_cast<ContentCoding>(each);
    require(split.quality(coding) == whole.quality(coding));
  }
  return 0;
}
