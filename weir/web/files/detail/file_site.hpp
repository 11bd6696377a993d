// Answers requests for the files of one folder.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/core_demands.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"
#include "weir/web/files/detail/file_cache.hpp"
#include "weir/web/files/detail/file_loader.hpp"
#include "weir/web/files/detail/site_core.hpp"
#include "weir/web/files/files.hpp"

namespace weir::http {

/// A FileSite has the folder and the options of one files(). Its caches lie in the loops.
/// The waits of its tasks end when the call of the pool ends, which cannot be interrupted.
/// Threads: all functions from any core.
/// Lifetime: a shared pointer, which the caches of the cores share.
class FileSite : public std::enable_shared_from_this<FileSite> {
 public:
  FileSite(std::string root, FilesOptions options);

  /// Answers a GET or HEAD for the path below the folder as it was sent; empty for the folder.
  /// Cancel: passed on to the reads; the response is 503.
  Task<Response> answer(Request& request, std::string_view raw_path) const;

  /// Returns the memory and the descriptors that the site takes on a core.
  CoreDemands demands() const noexcept;

 private:
  const std::shared_ptr<SiteCore>& core(Loop& loop) const;
  bool is_fresh(const Loop& loop, const FileEntry& entry) const noexcept;
  Task<Response> answer_path(Request& request, std::string_view path, bool may_fall_back) const;
  Task<Result<std::shared_ptr<FileEntry>>> load(std::string_view path,
                                                std::shared_ptr<FileEntry> old) const;
  std::shared_ptr<FileEntry> make_entry(Loop& loop, LoadedFile loaded, const FileEntry* old) const;
  Response respond(Request& request, Loop& loop, const FileEntry& entry) const;
  Task<Response> answer_missing(Request& request, std::string_view path, std::error_code error,
                                bool may_fall_back) const;
  Task<Response> list(Request& request, std::string_view path) const;

  const std::string root_;
  const FilesOptions options_;
  const os::BeneathLinks links_;
};

/// Makes the headers of the responses with a variant.
FileHeads make_heads(const FileEntry& entry, std::shared_ptr<const FileVariant> variant,
                     bool has_neighbours);

/// Returns the response with a variant of a file: 200, 206, 304, 412 or 416. A response with a
/// large file shares the variant until its body is sent, and holds one buffer of 64 KiB meanwhile.
/// It is 503 if the client has no right to a place for another large file.
Response respond_with_file(Request& request, Loop& loop, const std::shared_ptr<SiteCore>& core,
                           const FileEntry& entry, const FileHeads& heads);

/// Returns 503 for a client that may ask again in a second.
Response busy_response();

/// Returns a redirect to the path of a directory with a slash at its end. It is relative to the
/// path of the request, so that it stays on this host and below all prefixes.
Response redirect_to_directory(const Request& request);

/// Bytes of a list of a directory, apart from its last entry.
inline constexpr std::size_t listing_bytes_max = 1024 * 1024;

/// Options of listing_page().
struct ListingOptions {
  bool at_root = false;  ///< leave out the link to the directory above
  bool dotfiles = false;
  bool links = false;  ///< list symbolic links too
  std::size_t entries_max = 10'000;
};
/// Returns a page that links the first entries of a directory, and says if it has more. The page
/// ends at listing_bytes_max.
std::string listing_page(const std::vector<os::DirectoryEntry>& entries,
                         const ListingOptions& options);

}  // namespace weir::http
