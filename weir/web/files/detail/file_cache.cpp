#include "weir/web/files/detail/file_cache.hpp"

#include <algorithm>
#include <utility>

namespace weir::http {

std::size_t FileEntry::bytes() const noexcept {
  std::size_t total = 0;
  for (const FileHeads& each : variants) {
    total += each.ok.lines().size() + each.not_modified.lines().size();
    if (each.variant->bytes != nullptr) total += each.variant->bytes->size();
  }
  return total;
}

bool FileEntry::is_sent() const noexcept {
  return std::ranges::any_of(variants,
                             [](const FileHeads& each) { return !each.variant->sent.expired(); });
}

bool FileEntry::has_open_file() const noexcept {
  return std::ranges::any_of(variants,
                             [](const FileHeads& each) { return bool(each.variant->file); });
}

FileEntry* FileCache::find(std::string_view path) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return found->second->entry.get();
}

void FileCache::put(std::string_view path, std::shared_ptr<FileEntry> entry) {
  remove(path);
  bytes_ += entry->bytes() + path.size();
  used_.push_front({std::string(path), std::move(entry)});
  by_path_.emplace(used_.front().path, used_.begin());
  enforce_limits();
}

void FileCache::enforce_limits() {
  for (auto node = used_.end(); node != used_.begin();) {
    const bool too_large = bytes_ > limits_.bytes_max || used_.size() > limits_.entries_max;
    const bool too_open = open_files_->count() > limits_.open_files_max;
    if (!too_large && !too_open) return;
    --node;
    const FileEntry& entry = *node->entry;
    if (entry.is_sent() || (!too_large && !entry.has_open_file())) continue;
    drop(std::exchange(node, std::next(node)));
  }
}

void FileCache::remove(std::string_view path) {
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) drop(found->second);
}

void FileCache::drop(Nodes::iterator node) {
  bytes_ -= node->entry->bytes() + node->path.size();
  by_path_.erase(node->path);
  used_.erase(node);
}

}  // namespace weir::http
