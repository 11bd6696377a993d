// What the fuzzed promises are checked with.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace weir::fuzz {

/// Ends the program, which libFuzzer reports with its input.
inline void require(bool condition) {
  if (!condition) std::abort();
}

/// A copy of exactly its size, so that the address sanitizer sees a read beyond it.
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
