// The reasons for which compressed data is rejected.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>

namespace weir::compression {

/// The reason why data cannot be decompressed. It converts to std::error_code (category
/// "weir.compression").
enum class DecompressError : std::uint8_t {
  corrupt = 1,       ///< bytes that the format does not allow, or a wrong checksum
  truncated,         ///< the input ended before the compressed data did
  trailing_data,     ///< bytes after the end of the compressed data
  output_too_large,  ///< DecompressLimits::output_max
  ratio_too_high,    ///< DecompressLimits::ratio_max
  window_too_large,  ///< DecompressLimits::window_max: a format that needs more memory
};

/// Returns a short name for counters and logs, such as "ratio_too_high".
/// Lifetime: the text lives as long as the process.
std::string_view name_of(DecompressError error) noexcept;

/// Returns the category of DecompressError; its name is "weir.compression".
const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(DecompressError error) noexcept {
  return {static_cast<int>(error), error_category()};
}

/// Returns true if the data would have exceeded a limit: output_too_large, ratio_too_high or
/// window_too_large.
bool exceeds_limit(const std::error_code& code) noexcept;

}  // namespace weir::compression

template <>
struct std::is_error_code_enum<weir::compression::DecompressError> : std::true_type {};
