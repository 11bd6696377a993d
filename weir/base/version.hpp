// The version of the library.
#pragma once

#include <string_view>

namespace weir {

/// Returns the version of the linked library as "MAJOR.MINOR.PATCH" (semver.org). It is defined by
/// project() in CMakeLists.txt.
/// Threads: any.
std::string_view version() noexcept;

}  // namespace weir
