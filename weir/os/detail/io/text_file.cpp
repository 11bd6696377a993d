// Reads small files up to their end, because files in /proc and /sys report a size of zero.
#include "weir/os/detail/io/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return fail(system_error(errno));
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(system_error(errno));
    if (count == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > bytes_max) return fail(Errc::limit_reached);
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

}  // namespace weir::os
