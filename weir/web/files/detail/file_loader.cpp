#include "weir/web/files/detail/file_loader.hpp"

#include <cerrno>
#include <utility>

namespace weir::http {
namespace {

using Content = LoadedVariant::Content;

/// Reads all bytes of a small file.
/// Returns: the bytes; std::nullopt if the file has grown beyond small_file_max.
Result<std::optional<std::string>> read_small(loop::FileSystem& files, int file,
                                              std::uint64_t size) {
  std::string bytes(static_cast<std::size_t>(size) + 1, '\0');  // one more, to find the end
  std::size_t used = 0;
  for (;;) {
    const std::span<char> room = std::span(bytes).subspan(used);
    WEIR_TRY(const auto count, files.read_at(file, std::as_writable_bytes(room), used));
    used += count;
    if (count == 0) break;
    if (used > small_file_max) return std::optional<std::string>();
    if (used == bytes.size()) bytes.resize(used + 4096);
  }
  bytes.resize(used);
  bytes.shrink_to_fit();
  return std::optional(std::move(bytes));
}

Result<LoadedVariant> load_opened(loop::FileSystem& files, loop::FileSystem::FileBeneath found,
                                  const std::optional<os::FileStatus>& known) {
  LoadedVariant variant;
  variant.status = found.status;
  if (known && *known == found.status) {
    variant.content = Content::unchanged;
    return variant;
  }
  // A file that changes during the read is read again, so that bytes and status fit.
  constexpr int tries_max = 3;
  for (int tries = 0; tries < tries_max && variant.status.size <= small_file_max; ++tries) {
    WEIR_TRY(auto bytes, read_small(files, found.file.value(), variant.status.size));
    WEIR_TRY(const auto after, files.file_status(found.file.value()));
    const bool is_same = after == std::exchange(variant.status, after);
    if (!bytes || (!is_same && tries + 1 < tries_max)) continue;
    variant.content = Content::bytes;
    variant.status.size = bytes->size();
    variant.bytes = std::make_shared<const std::string>(std::move(*bytes));
    return variant;
  }
  variant.content = Content::file;
  variant.file = std::move(found.file);
  return variant;
}

}  // namespace

Result<LoadedFile> load_file(loop::FileSystem& files, const FileQuery& query) {
  LoadedFile loaded;
  loaded.path = query.path;
  if (query.wants_directory) {
    if (query.index.empty()) return fail(system_error(ENOENT));
    if (!loaded.path.empty()) loaded.path += '/';
    loaded.path += query.index;
  }
  WEIR_TRY(auto found, files.open_beneath(query.root, loaded.path, query.links));
  if (!found.file) {
    if (query.wants_directory) return fail(system_error(ENOENT));
    loaded.is_directory = true;
    return loaded;
  }
  WEIR_TRY(loaded.variants[0], load_opened(files, std::move(found), query.known[0]));
  if (!query.precompressed) return loaded;
  for (std::size_t each = 0; each < neighbours.size(); ++each) {
    const std::string path = loaded.path + std::string(neighbours[each].extension);
    auto opened = files.open_beneath(query.root, path, query.links);
    if (!opened || !opened->file) continue;  // also one that may not be read
    if (opened->status.modified < loaded.variants[0].status.modified) continue;
    auto variant = load_opened(files, std::move(*opened), query.known[each + 1]);
    if (variant) loaded.variants[each + 1] = std::move(*variant);
  }
  return loaded;
}

}  // namespace weir::http
