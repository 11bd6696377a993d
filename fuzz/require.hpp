// Checks the conditions of fuzz targets.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace weir::fuzz {

/// Aborts the program if `condition` is false. libFuzzer then reports the input.
inline void require(bool condition) {
  if (!condition) std::abort();
}

/// An ExactCopy is a copy in memory of exactly its size, so that the address sanitizer reports a
/// read beyond its end.
class ExactCopy {
 public:
  explicit ExactCopy(std::string_view text) : bytes_(new char[text.size()]), size_(text.size()) {
    if (size_ > 0) std::memcpy(bytes_.get(), text.data(), size_);
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

}  // namespace weir::fuzz
