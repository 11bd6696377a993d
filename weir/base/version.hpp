// Which Weir this is.
#pragma once

#include <string_view>

namespace weir {

/// "MAJOR.MINOR.PATCH" (semver.org) of the library that is linked; its one place is project() in
/// CMakeLists.txt. Threads: any.
std::string_view version() noexcept;

}  // namespace weir
