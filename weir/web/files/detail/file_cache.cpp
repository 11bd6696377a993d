#include "weir/web/files/detail/file_cache.hpp"

#include <utility>

namespace weir::http {

std::size_t FileEntry::bytes() const noexcept {
  std::size_t total = 0;
  for (const auto& each : variants)
    total += each.variant->bytes != nullptr ? each.variant->bytes->size() : 0;
  return total;
}

std::size_t FileEntry::open_files() const noexcept {
  std::size_t total = 0;
  for (const auto& each : variants) total += each.variant->file ? 1 : 0;
  return total;
}

FileEntry* FileCache::find(std::string_view path) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return found->second->entry.get();
}

void FileCache::put(std::string_view path, std::shared_ptr<FileEntry> entry) {
  remove(path);
  bytes_ += entry->bytes();
  open_files_ += entry->open_files();
  used_.push_front({std::string(path), std::move(entry)});
  by_path_.emplace(used_.front().path, used_.begin());
  while (bytes_ > limits_.bytes_max || open_files_ > limits_.open_files_max ||
         used_.size() > limits_.entries_max) {
    drop(std::prev(used_.end()));
  }
}

void FileCache::remove(std::string_view path) {
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) drop(found->second);
}

void FileCache::drop(Nodes::iterator node) {
  bytes_ -= node->entry->bytes();
  open_files_ -= node->entry->open_files();
  by_path_.erase(node->path);
  used_.erase(node);
}

}  // namespace weir::http
