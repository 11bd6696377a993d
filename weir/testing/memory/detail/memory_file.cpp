// The bytes of a simulated file, page by page.
#include "weir/testing/memory/detail/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir {

MemoryFileBytes::MemoryFileBytes(const MemoryFileBytes& other)
    : disk_(other.disk_), size_(other.size_), pages_(other.pages_) {
  disk_->pages += pages_.size();
}

MemoryFileBytes& MemoryFileBytes::operator=(const MemoryFileBytes& other) {
  if (this == &other) return *this;
  disk_->pages -= pages_.size();
  size_ = other.size_;
  pages_ = other.pages_;
  disk_->pages += pages_.size();
  return *this;
}

std::size_t MemoryFileBytes::read(MutableBytes target, std::uint64_t offset) const {
  if (offset >= size_) return 0;
  const std::size_t count =
      static_cast<std::size_t>(std::min<std::uint64_t>(target.size(), size_ - offset));
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t at = offset + done;
    const auto within = static_cast<std::size_t>(at % page_bytes);
    const std::size_t some = std::min(count - done, page_bytes - within);
    const auto page = pages_.find(at / page_bytes);
    if (page == pages_.end()) {
      std::memset(target.data() + done, 0, some);
    } else {
      std::memcpy(target.data() + done, page->second.data() + within, some);
    }
    done += some;
  }
  return count;
}

Result<std::size_t> MemoryFileBytes::write(Bytes source, std::uint64_t offset) {
  if (source.empty()) return 0;
  if (offset >= os::file_offset_max) return fail(system_error(EFBIG));
  const auto count = static_cast<std::size_t>(
      std::min<std::uint64_t>(source.size(), os::file_offset_max - offset));
  std::size_t done = 0;
  while (done < count) {
    const std::uint64_t at = offset + done;
    const std::uint64_t number = at / page_bytes;
    auto page = pages_.find(number);
    if (page == pages_.end()) {
      if (disk_->pages >= disk_->pages_max) break;
      page = pages_.emplace(number, Page{}).first;
      ++disk_->pages;
    }
    const auto within = static_cast<std::size_t>(at % page_bytes);
    const std::size_t some = std::min(count - done, page_bytes - within);
    std::memcpy(page->second.data() + within, source.data() + done, some);
    done += some;
  }
  if (done == 0) return fail(system_error(ENOSPC));
  size_ = std::max(size_, offset + done);
  return done;
}

void MemoryFileBytes::resize(std::uint64_t size) {
  if (size < size_) {
    const std::uint64_t whole = (size + page_bytes - 1) / page_bytes;
    const auto beyond = pages_.lower_bound(whole);
    disk_->pages -= static_cast<std::size_t>(std::distance(beyond, pages_.end()));
    pages_.erase(beyond, pages_.end());
    // Bytes beyond the end read as zeros when the file grows again.
    const auto last = pages_.find(size / page_bytes);
    const auto within = static_cast<std::size_t>(size % page_bytes);
    if (last != pages_.end())
      std::fill(last->second.begin() + within, last->second.end(), std::byte{});
  }
  size_ = size;
}

}  // namespace weir
