// Declares the files of tests/data that are built into the tool. The build generates their source
// (see CMakeLists.txt).
#pragma once

#include <string_view>

namespace weir::check::data {

extern const std::string_view http1_rules;
extern const std::string_view http1_cases;
extern const std::string_view http1_more;
extern const std::string_view http1_smuggling;

}  // namespace weir::check::data
