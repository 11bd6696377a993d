// Parses any bytes as a header of the PROXY protocol. A header is found at the same place however
// its bytes arrive, and a reader that reads what is missing never reads more than the header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/net/detail/proxy_header.hpp"

namespace {

using weir::ProxyHeaderResult;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using Kind = ProxyHeaderResult::Kind;

ProxyHeaderResult parse(std::string_view text) {
  const ExactCopy copy(text);
  return weir::parse_proxy_header(weir::to_bytes(copy.view()));
}

bool same(const ProxyHeaderResult& a, const ProxyHeaderResult& b) {
  return a.kind == b.kind && a.size == b.size && a.header.source == b.header.source &&
         a.header.destination == b.header.destination;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ProxyHeaderResult whole = parse(text);
  require(whole.kind != Kind::complete || whole.size <= size);
  require(whole.kind == Kind::malformed || whole.size > 0);
  std::size_t read = 0;
  ProxyHeaderResult result = parse({});
  while (result.kind == Kind::need_more && read + result.size <= size) {
    read += result.size;
    result = parse(text.substr(0, read));
  }
  require(read <= weir::ProxyHeader::size_max);
  if (whole.kind == Kind::complete) {
    require(same(result, whole) && read == whole.size);
    require(same(parse(text.substr(0, whole.size)), whole));
  } else if (whole.kind == Kind::malformed) {
    require(result.kind != Kind::complete);
  }
  for (std::size_t cut = 0; cut < std::min<std::size_t>(size, 40); ++cut) {
    const ProxyHeaderResult part = parse(text.substr(0, cut));
    if (whole.kind == Kind::complete && cut < whole.size) require(part.kind == Kind::need_more);
    if (part.kind == Kind::malformed) require(whole.kind == Kind::malformed);
  }
  return 0;
}
