// Decodes any bytes as a chunked body. The verdict does not depend on cuts, and it equals the
// verdict of a second decoder, which has no limits. Decoded data that is written as chunks decodes
// to the same data again.
#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A SecondDecoder reads a whole chunked body by the grammar of RFC 9112 §7.1.
class SecondDecoder {
 public:
  explicit SecondDecoder(std::string_view input) : rest_(input) {}

  /// Returns std::nullopt if the body is invalid or incomplete.
  std::optional<std::string> decode() {
    std::string data;
    for (;;) {
      const std::string digits(take_all("0123456789abcdefABCDEF"));
      if (digits.empty() || digits.size() > 16) return std::nullopt;
      const std::uint64_t size = std::stoull(digits, nullptr, 16);
      if (size >> 63 != 0 || !take_extensions() || !take("\r\n")) return std::nullopt;
      if (size == 0) break;
      if (rest_.size() < size) return std::nullopt;
      data += rest_.substr(0, size);
      rest_.remove_prefix(size);
      if (!take("\r\n")) return std::nullopt;
    }
    while (!take("\r\n")) {
      if (!take_trailer()) return std::nullopt;
    }
    return data;
  }
  /// Returns the bytes after the body.
  std::string_view rest() const { return rest_; }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view take_all(std::string_view characters) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_not_of(characters));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view take_token() {
    return take_all(
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  }
  /// Takes one byte that a field value may contain.
  bool take_visible() {
    if (rest_.empty()) return false;
    const auto byte = static_cast<unsigned char>(rest_.front());
    if (byte != '\t' && (byte < ' ' || byte == 0x7F)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_quoted() {
    while (!take("\"")) {
      static_cast<void>(take("\\"));
      if (!take_visible()) return false;
    }
    return true;
  }
  /// Takes *( BWS ";" BWS name [ BWS "=" BWS value ] ). Returns false if a part is missing.
  bool take_extensions() {
    for (;;) {
      std::string_view before = rest_;
      take_all(" \t");
      if (!take(";")) {
        rest_ = before;
        return true;
      }
      take_all(" \t");
      if (take_token().empty()) return false;
      before = rest_;
      take_all(" \t");
      if (!take("=")) {
        rest_ = before;
        continue;
      }
      take_all(" \t");
      if (take("\"") ? !take_quoted() : take_token().empty()) return false;
    }
  }
  bool take_trailer() {
    const std::string name(take_token());
    for (const char* const forbidden : {"Content-Length", "Transfer-Encoding", "Host", "Connection",
                                        "Upgrade", "Expect", "TE", "Trailer"}) {
      if (::strcasecmp(name.c_str(), forbidden) == 0) return false;
    }
    if (name.empty() || !take(":")) return false;
    for (bool taken = true; taken;) taken = take_visible();
    return take("\r\n");
  }

  std::string_view rest_;
};

/// Compares a verdict without tight limits with that of the second decoder.
void check_verdict(const Decoded& decoded, std::string_view input) {
  constexpr std::size_t unlimited = 300;  // no shorter input reaches a limit
  if (input.size() > unlimited) return;
  SecondDecoder second(input);
  const std::optional<std::string> data = second.decode();
  require((decoded.kind == Kind::end) == data.has_value());
  if (data) require(decoded.data == *data && input.substr(decoded.consumed) == second.rest());
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
  check_verdict(decode(input, std::max<std::size_t>(size, 1), {}), input);
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
