// Reads small text files, such as those of the kernel in /proc and /sys.
#pragma once

#include <cstddef>
#include <string>

#include "weir/base/result.hpp"

namespace weir::os {

/// Returns the whole text of the file at `path`, without white space at its end. It blocks as long
/// as reading the file does.
/// Errors: Errc::limit_reached if the text has more than `bytes_max` bytes; the kernel's.
Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max = 1 << 20);

}  // namespace weir::os
