// The names and texts of the errors of compression.
#include "weir/compression/error.hpp"

#include <array>
#include <string>

namespace weir::compression {
namespace {

struct Row {
  DecompressError error;
  std::string_view name;
  std::string_view message;
};

constexpr std::array rows{
    Row{DecompressError::corrupt, "corrupt", "compressed data: the bytes violate the format"},
    Row{DecompressError::truncated, "truncated",
        "compressed data: the input ends before the data does"},
    Row{DecompressError::trailing_data, "trailing_data",
        "compressed data: bytes follow the end of the data"},
    Row{DecompressError::output_too_large, "output_too_large",
        "compressed data: the decompressed size exceeds its limit"},
    Row{DecompressError::ratio_too_high, "ratio_too_high",
        "compressed data: the ratio of decompressed to compressed bytes exceeds its limit"},
    Row{DecompressError::window_too_large, "window_too_large",
        "compressed data: the format needs a window that exceeds its limit"},
};

const Row* find(int value) noexcept {
  for (const Row& row : rows) {
    if (static_cast<int>(row.error) == value) return &row;
  }
  return nullptr;
}

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.compression"; }
  std::string message(int value) const override {
    const Row* const row = find(value);
    return row != nullptr ? std::string(row->message) : "unknown error";
  }
};

}  // namespace

std::string_view name_of(DecompressError error) noexcept {
  const Row* const row = find(static_cast<int>(error));
  return row != nullptr ? row->name : "unknown";
}

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

bool exceeds_limit(const std::error_code& code) noexcept {
  return code == DecompressError::output_too_large || code == DecompressError::ratio_too_high ||
         code == DecompressError::window_too_large;
}

}  // namespace weir::compression
