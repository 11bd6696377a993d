// The codings of HTTP contents that this build can make and read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::compression {

/// A content coding of HTTP (RFC 9110 §8.4.1, RFC 7932, RFC 8878).
enum class Coding : std::uint8_t {
  identity,  ///< no coding
  gzip,      ///< needs zlib; libdeflate makes whole contents faster
  deflate,   ///< DEFLATE in the format zlib; needs zlib
  brotli,    ///< "br"; needs brotli
  zstd,      ///< needs zstd
};
inline constexpr std::size_t coding_count = 5;

/// Returns the name of the coding in headers, such as "br".
/// Lifetime: the text lives as long as the process.
std::string_view name_of(Coding coding) noexcept;

/// Returns the coding of this name in any letter case, also of "x-gzip" (RFC 9110 §8.4.1.3).
/// nullopt for other names.
std::optional<Coding> coding_of(std::string_view name) noexcept;

/// Returns true if this build makes and reads the coding. The libraries are optional.
bool is_available(Coding coding) noexcept;

/// A coding and its level. A higher level makes smaller contents and needs more time.
struct CodingLevel {
  Coding coding = Coding::identity;
  /// 1 to 9 for gzip and deflate, 0 to 11 for brotli, 1 to 19 for zstd.
  int level = 1;
  friend bool operator==(const CodingLevel&, const CodingLevel&) = default;
};

/// Returns true if the coding is available and has this level. No level is valid for identity.
bool is_valid(const CodingLevel& level) noexcept;

/// Returns an upper bound of the bytes that a Compressor of this level allocates.
std::size_t compressor_bytes_max(const CodingLevel& level) noexcept;

}  // namespace weir::compression
