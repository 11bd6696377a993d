#include "weir/runtime/checks/finding.hpp"

namespace weir {

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
  return line;
}

}  // namespace weir
