// The doctor: all checks of what a machine gives and takes from a service, as `weir doctor` runs
// them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/runtime/checks/finding.hpp"
#include "weir/runtime/checks/machine_checks.hpp"
#include "weir/tls/options.hpp"

namespace weir::doctor {

/// DoctorOptions is what a service asks of its machine, beside its Demands: files, names, and
/// stores that it reaches.
struct DoctorOptions {
  checks::Demands demands = checks::default_demands();
  std::vector<tls::IdentityFiles> certificates = {};
  /// A certificate that expires within this time is a finding.
  Duration certificate_warning = std::chrono::days(14);
  /// Servers that must accept a connection: URLs such as "postgres://db.example.org/shop", or
  /// HOST:PORT. Credentials in them are never shown.
  std::vector<std::string> stores = {};
  std::vector<std::string> names = {};  ///< host names that must resolve
  /// True if the service runs now, so that its addresses are in use.
  bool running = false;
  /// Time of each check of a name or a store. They run together.
  Duration timeout = std::chrono::seconds(3);
  /// A prefix of /proc, /sys and /etc: the files of another machine. Empty: this machine.
  std::string root = {};
};

/// Says if notes are shown, which are information that no demand concerns.
enum class Notes : std::uint8_t { hidden, shown };

/// DoctorReport is the result of all checks.
struct DoctorReport {
  std::vector<checks::Finding> findings;  ///< the most severe first
  std::size_t checks = 0;                 ///< number of checks that were made

  /// Returns 0 if all is well, 1 if something limits the service, 2 if it cannot run.
  int exit_status() const noexcept;
  /// Returns one line for each finding and one summary line: "doctor: 31 checks: well".
  std::string to_text(Notes notes = Notes::hidden) const;
  /// Returns an object with `status`, `checks` and `findings`, with the notes.
  std::string to_json() const;
};

/// Makes all checks. It reads files, connects to stores and looks up names, and blocks meanwhile,
/// so main() calls it before loops run. It changes nothing; an address that a service wants is
/// bound for a moment.
/// Returns: what was found. A check that needs an unknown fact finds nothing.
/// Threads: not the thread of a loop.
DoctorReport examine(const DoctorOptions& options);

}  // namespace weir::doctor
