// The small files by which the kernel tells about itself in /proc and /sys.
#pragma once

#include <cstddef>
#include <string>

#include "weir/base/result.hpp"

namespace weir::os {

/// The whole text of the file at `path`, without the white space at its end.
/// Errc::limit_reached when it is longer than `bytes_max`. Blocks as long as the file does.
Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max = 1 << 20);

}  // namespace weir::os
