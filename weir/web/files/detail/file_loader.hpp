// Reads a file of a folder, and its precompressed neighbours, on a thread that may block.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/web/encoding/accept_encoding.hpp"

namespace weir::http {

/// The codings of neighbours in the order of preference, and their extensions.
struct Neighbour {
  ContentCoding coding;
  std::string_view extension;
};
inline constexpr std::array<Neighbour, 3> neighbours{
    {{ContentCoding::brotli, ".br"}, {ContentCoding::zstd, ".zst"}, {ContentCoding::gzip, ".gz"}}};
/// A file and its neighbours; the file itself is the first.
inline constexpr std::size_t variants_max = 1 + neighbours.size();

/// Files of at most this size are kept as bytes, larger ones as open files.
inline constexpr std::size_t small_file_max = 64 * 1024;

/// A FileQuery names the file to load, and the known status of its variants.
struct FileQuery {
  std::string root;
  std::string path;              ///< below the root; empty: the root
  std::string index;             ///< of a directory; empty: none
  bool wants_directory = false;  ///< true if the path of the request ended with '/'
  bool precompressed = false;
  os::BeneathLinks links = os::BeneathLinks::none;
  /// The status of each variant that is known. A variant whose status is the same is not read.
  std::array<std::optional<os::FileStatus>, variants_max> known = {};
};

/// A variant that was loaded.
struct LoadedVariant {
  enum class Content : std::uint8_t { missing, unchanged, bytes, file };
  Content content = Content::missing;
  os::FileStatus status;
  std::shared_ptr<const std::string> bytes;
  loop::Descriptor file;
};

/// The result of a query: a directory, or a file with its neighbours.
struct LoadedFile {
  bool is_directory = false;
  std::string path;  ///< path of the file below the root
  std::array<LoadedVariant, variants_max> variants;
};

/// Loads a file, and its neighbours that are not older. An older neighbour has the former content.
/// The function blocks.
/// Errors: ENOENT if there is no such file, or if a path without '/' at its end is expected to be
/// a file; otherwise those of FileSystem::open_beneath() and read_at().
/// Threads: any.
Result<LoadedFile> load_file(loop::FileSystem& files, const FileQuery& query);

}  // namespace weir::http
