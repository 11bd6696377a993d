// Bytes in and out of an open file: by the backend where it can, else by a thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/task/task.hpp"

namespace weir::files {

/// So much is asked for at once: io_uring copies what is in memory on the loop's own thread, which
/// has others to serve (a mebibyte takes it 0.1 ms).
inline constexpr std::size_t transfer_max = 1024 * 1024;

/// Some bytes, at least one; 0: the file ends at `offset`. `target` is not empty. Errors: EINVAL
/// for an offset beyond os::file_offset_max.
/// Cancel: see weir/net/files.hpp.
Task<Result<std::size_t>> read_some(int file, MutableBytes target, std::uint64_t offset);
/// All of `source`; `written` tells how many bytes, also after an error.
/// Cancel: see weir/net/files.hpp; a part may have been written.
Task<Result<>> write_all(int file, Bytes source, std::uint64_t offset, std::uint64_t& written);
/// Cancel: see weir/net/files.hpp.
Task<Result<>> sync(int file);

}  // namespace weir::files
