#include "weir/compression/coding.hpp"

#include <algorithm>
#include <utility>

#include "weir/compression/detail/codec.hpp"
#include "weir/compression/raw_deflate.hpp"

namespace weir::compression {
namespace {

constexpr std::array<std::string_view, coding_count> names{"identity", "gzip", "deflate", "br",
                                                           "zstd"};

constexpr std::size_t mib = 1024 * 1024;

bool equals_lower_case(std::string_view text, std::string_view lower) noexcept {
  return std::ranges::equal(text, lower, [](char left, char right) {
    return (left >= 'A' && left <= 'Z' ? static_cast<char>(left - 'A' + 'a') : left) == right;
  });
}

}  // namespace

std::string_view name_of(Coding coding) noexcept {
  return names[static_cast<std::size_t>(coding)];
}

std::optional<Coding> coding_of(std::string_view name) noexcept {
  if (equals_lower_case(name, "x-gzip")) return Coding::gzip;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (equals_lower_case(name, names[index])) return static_cast<Coding>(index);
  }
  return std::nullopt;
}

bool is_available(Coding coding) noexcept {
  switch (coding) {
    case Coding::identity:
      return true;
    case Coding::gzip:
    case Coding::deflate:
      return detail::has_zlib();
    case Coding::brotli:
      return detail::has_brotli();
    case Coding::zstd:
      return detail::has_zstd();
  }
  std::unreachable();
}

bool is_valid(const CodingLevel& of) noexcept {
  if (!is_available(of.coding)) return false;
  const auto between = [&](int low, int high) { return of.level >= low && of.level <= high; };
  switch (of.coding) {
    case Coding::identity:
      return false;
    case Coding::gzip:
    case Coding::deflate:
      return between(1, 9);
    case Coding::brotli:
      return between(0, 11);
    case Coding::zstd:
      return between(1, 19);
  }
  std::unreachable();
}

std::size_t compressor_bytes_max(const CodingLevel& of) noexcept {
  switch (of.coding) {
    case Coding::identity:
      return 0;
    case Coding::gzip:
    case Coding::deflate:
      return raw_deflate_bytes_max({});
    case Coding::brotli:
      return (of.level <= 1 ? 2 : of.level <= 4 ? 8 : 48) * mib;
    case Coding::zstd:
      return (of.level <= 3 ? 2 : of.level <= 9 ? 16 : 96) * mib;
  }
  std::unreachable();
}

}  // namespace weir::compression
