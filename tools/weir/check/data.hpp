// The files of tests/data that the tool carries; the build makes their source, see CMakeLists.txt.
#pragma once

#include <string_view>

namespace weir::check::data {

extern const std::string_view http1_rules;
extern const std::string_view http1_cases;
extern const std::string_view http1_more;
extern const std::string_view http1_smuggling;

}  // namespace weir::check::data
