// Finding: one way in which a machine gives a service less than the service asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::checks {

/// The Severity of a Finding.
enum class Severity : std::uint8_t {
  note,    ///< information, which changes no exit status
  limits,  ///< the service gets less than it asks for
  fatal,   ///< the service cannot run
};

/// Returns "note", "limits" or "fatal".
std::string_view name_of(Severity severity) noexcept;

/// A Finding is the result of a check that has failed. Its texts are for operators.
struct Finding {
  std::string_view check = {};  ///< fixed name of the check, such as "descriptors"; see docs/guide
  Severity severity = Severity::note;
  std::string found = {};        ///< "at most 70 open files (RLIMIT_NOFILE)"
  std::string wanted = {};       ///< "20,074 for 20,000 connections"
  std::string consequence = {};  ///< "6 connections; further clients wait without an answer"
  std::string remedy = {};       ///< a command or a line of a file that mends it; may be empty

  /// Returns one line: "descriptors: FOUND, wanted WANTED: CONSEQUENCE (REMEDY)". Bytes that are
  /// not printable, such as those of a name in a file, are \xNN.
  std::string to_line() const;
};

/// Puts the most severe findings first. Those of one severity keep their order.
void sort_by_severity(std::vector<Finding>& findings);

}  // namespace weir::checks
