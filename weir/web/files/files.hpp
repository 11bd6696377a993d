// Serves the files of a folder: `router.mount("/static", http::files("/var/www"))`.
//
// GET and HEAD with all preconditions (RFC 9110 §13) and ranges (§14). Each file has a strong ETag
// and a Last-Modified. The tag of a file of at most 64 KiB is made from its bytes, so all servers
// with equal files send the same tag. That of a larger file is made from its inode, its size, its
// time of modification and its time of change, so each server has its own. It is weak during the
// first two seconds after a change, while another change may have the same time. Last-Modified is
// the time of modification, which programs can set. So a date in If-Range applies only to a file
// whose time of change confirms it.
//
// No path leads out of the folder. A path is decoded once. Segments that are empty, "." or "..", or
// that contain '/', '\' or a zero byte, and names that begin with a dot, are answered with 404. The
// kernel resolves the rest below the folder (openat2(2), RESOLVE_BENEATH) and follows no symbolic
// link. Only regular files are served.
//
// Files of at most 64 KiB stay in a cache of the core, with their heads. Of larger files the cache
// holds open descriptors. A large file that is being sent has one of
// FilesOptions::open_files_max places, whatever the number of its readers. The clients share them
// by network of their address. A network that reads its share of large files gets 503 with
// Retry-After for another one. An entry is compared with its file again after
// FilesOptions::revalidate_after; requests that arrive during the comparison get the entry as it
// was. Plain HTTP/1.1 sends what is in memory without a copy (sendfile(2)). A turn sends at
// most 256 KiB, or 1 MiB once the client was slower than the server. Otherwise a response of a
// larger file holds one buffer of 64 KiB. What is not in memory is read by io_uring or a thread, so
// the loop does not wait for a disk. A file that shrinks while it is sent ends the connection, so
// that the client never mistakes a part for the whole. Replace a large file by rename(2): one that
// is written in place has its former tag until the next comparison.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/router/router.hpp"

namespace weir::http {

/// CacheRule sets the Cache-Control of files whose path matches a pattern. `*` and `?` match within
/// one segment, and `**` matches any text. A pattern without '/' is compared with the file's name,
/// others with the whole path below the folder: "*.html", "assets/**".
struct CacheRule {
  std::string pattern;
  std::string cache_control;  ///< for example "public, max-age=31536000, immutable"
};

/// ExtensionType is the media type of files with an extension, which is given without the dot.
struct ExtensionType {
  std::string extension;
  std::string media_type;
};

/// FilesOptions sets what files() serves, and its limits.
struct FilesOptions {
  /// Name of the file that answers the path of a directory; empty: none.
  std::string index = "index.html";
  /// Answer a directory without an index file with the list of its files.
  bool listing = false;
  /// Path of the file that answers paths without a file whose last segment has no dot, as pages
  /// with routes of their own need it: "index.html". Empty: such paths get 404.
  std::string spa_fallback = "";
  /// Serve files and folders whose names begin with a dot.
  bool dotfiles = false;
  /// Follow symbolic links with relative targets below the folder. Other links are never followed,
  /// also not absolute ones whose target is below the folder.
  bool follow_links = false;
  /// Serve the neighbours `NAME.br`, `NAME.zst` and `NAME.gz` to clients that accept these codings.
  /// A neighbour that was modified before its file is left out, because it has the former content.
  /// A program that copies files sets their times of modification in that order, or keeps them.
  bool precompressed = false;
  /// The first rule that matches counts.
  std::vector<CacheRule> cache_control = {};
  /// Media types in addition to those of media_type_of(); they come first.
  std::vector<ExtensionType> media_types = {};

  /// Time after which the next request compares a file with its cache entry. With 0, each request
  /// does that.
  Duration revalidate_after = std::chrono::seconds(1);
  // Limits for each core. The entry that was not used for the longest time leaves the cache.
  std::size_t cache_bytes_max = 16 * 1024 * 1024;  ///< bytes of files, their heads and paths
  std::size_t cache_entries_max = 4096;            ///< paths
  /// Large files that are open, in the cache and being sent. One can be sent in any case. With
  /// `precompressed`, a file that is being sent may have four descriptors with its neighbours.
  std::size_t open_files_max = 100;
  /// Number of names that the list of a directory has, if they fit into 1 MiB. The list says if
  /// there are more. A directory with more than ten times as many gets 500. At most 4 lists are
  /// made or sent at a time, and others wait for them.
  std::size_t listing_max = 10'000;
};

/// Returns a router that serves the files below the folder `root`, to be mounted or served. Links
/// in `root` itself are followed for each file, so a deployment may switch a link.
/// Throws std::invalid_argument for a Cache-Control or a media type that no header can hold.
Router files(std::string root, FilesOptions options = {});

}  // namespace weir::http
