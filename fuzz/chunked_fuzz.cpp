// Decodes any bytes as a chunked body. The verdict does not depend on cuts. Decoded data that is
// written as chunks decodes to the same data again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/writer.hpp"

namespace {

using weir::fuzz::require;
using weir::http::ChunkedDecoder;
using Kind = ChunkedDecoder::Step::Kind;

struct Decoded {
  std::string data;
  std::string trailers;
  std::size_t consumed = 0;
  Kind kind = Kind::need_more;
  weir::http::ParseError error = weir::http::ParseError::none;

  bool operator==(const Decoded&) const = default;
};

/// Decodes `input` in pieces of `step` bytes, each in memory of its own.
Decoded decode(std::string_view input, std::size_t step, const weir::http::ChunkLimits& limits) {
  ChunkedDecoder decoder(limits);
  Decoded decoded;
  std::size_t given = 0;
  while (given < input.size() && decoded.kind == Kind::need_more) {
    const std::string piece(input.substr(given, step));
    given += piece.size();
    std::string_view rest = piece;
    do {
      const ChunkedDecoder::Step found = decoder.next(rest);
      require(found.consumed <= rest.size());
      require(found.kind != Kind::data || !found.data.empty());
      require(found.kind != Kind::need_more || found.consumed == rest.size());
      decoded.data += found.data;
      decoded.consumed += found.consumed;
      decoded.kind = found.kind;
      decoded.error = found.error;
      rest.remove_prefix(found.consumed);
    } while (decoded.kind == Kind::data);
  }
  decoded.trailers = decoder.trailers().lines();
  return decoded;
}

std::string encode(const Decoded& decoded, std::size_t step) {
  std::string out;
  for (std::size_t at = 0; at < decoded.data.size(); at += step) {
    const std::string_view piece = std::string_view(decoded.data).substr(at, step);
    char size[weir::http::chunk_size_max];
    out.append(size, weir::http::write_chunk_size(piece.size(), size));
    out += piece;
    out += weir::http::chunk_end;
  }
  return out + "0\r\n" + decoded.trailers + "\r\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const weir::http::ChunkLimits tight{
      .line_max = 12, .extensions_max = 20, .trailers_bytes_max = 16, .trailers_max = 2};
  for (const weir::http::ChunkLimits& limits : {weir::http::ChunkLimits{}, tight}) {
    const Decoded whole = decode(input, std::max<std::size_t>(size, 1), limits);
    require(decode(input, 1, limits) == whole);
    require(decode(input, size / 3 + 1, limits) == whole);
    if (whole.kind != Kind::end) continue;
    const std::string again = encode(whole, 7);
    const Decoded second = decode(again, again.size(), {});
    require(second.kind == Kind::end && second.consumed == again.size());
    require(second.data == whole.data && second.trailers == whole.trailers);
  }
  return 0;
}
