#include "weir/runtime/checks/finding.hpp"

#include <utility>

#include "weir/base/text/detail/printable.hpp"

namespace weir::checks {

std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::limits:
      return "limits";
    case Severity::fatal:
      return "fatal";
  }
  return "note";
}

std::string Finding::to_line() const {
  std::string line(check);
  line += ": " + found;
  if (!wanted.empty()) line += ", wanted " + wanted;
  line += ": " + consequence;
  if (!remedy.empty()) line += " (" + remedy + ")";
  return to_printable(line);
}

void sort_by_severity(std::vector<Finding>& findings) {
  std::vector<Finding> sorted;
  for (const Severity severity : {Severity::fatal, Severity::limits, Severity::note}) {
    for (Finding& each : findings) {
      if (each.severity == severity) sorted.push_back(std::move(each));
    }
  }
  findings = std::move(sorted);
}

}  // namespace weir::checks
