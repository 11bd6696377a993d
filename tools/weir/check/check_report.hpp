// Reports the result of a check, as text and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_run.hpp"

namespace weir::check {

struct ReportOptions {
  std::string url;
  bool verified = false;  ///< true: the certificate of the server was verified
  bool all = false;       ///< true: the report includes the cases that passed
};

/// Returns a table by rules, then the failed and the not applicable cases. Each case has its
/// rule, the bytes sent, and the expected and actual behaviour. The last line has the counts.
std::string to_text(const CheckReport& report, const ReportOptions& options);

/// Returns one JSON object in one line, with the counts and every case.
std::string to_json(const CheckReport& report, const ReportOptions& options);

/// Returns the cases with their rules, one per line.
std::string to_list(const std::vector<const Case*>& cases);

/// Returns `bytes` in printable ASCII, escaped with \r, \n, \t, \\ and \xNN. It leaves out the
/// middle if there are more than `size_max` bytes.
std::string shortened(std::string_view bytes, std::size_t size_max);

}  // namespace weir::check
