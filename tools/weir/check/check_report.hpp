// What a check came to, for people and for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_run.hpp"

namespace weir::check {

struct ReportOptions {
  std::string url;
  bool all = false;  ///< also those that passed
};

/// A table by rules, then what failed and what did not apply, each with its rule, what was sent,
/// wanted and came; the last line has the counts.
std::string to_text(const CheckReport& report, const ReportOptions& options);

/// One JSON object in one line: the counts and every case.
std::string to_json(const CheckReport& report, const ReportOptions& options);

/// The cases with their rules, one a line.
std::string to_list(const std::vector<const Case*>& cases);

/// Printable ASCII, with \r, \n, \t, \\ and \xNN, and its middle left out where it is long.
std::string shortened(std::string_view bytes, std::size_t size_max);

}  // namespace weir::check
