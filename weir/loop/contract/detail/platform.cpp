#include "weir/loop/contract/detail/platform.hpp"

#include <new>

#include "weir/base/text/detail/printable.hpp"

namespace weir::loop {

void PlatformLog::log(std::string_view line) noexcept {
  const std::size_t printable = printable_prefix(line);
  if (printable == line.size()) return write_line(line);
  try {
    write_line(to_printable(line));
  } catch (const std::bad_alloc&) {
    write_line(line.substr(0, printable));
  }
}

}  // namespace weir::loop
