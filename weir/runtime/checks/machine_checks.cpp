#include "weir/runtime/checks/machine_checks.hpp"

#include <algorithm>
#include <string>

namespace weir {
namespace {

using Findings = std::vector<Finding>;

// Descriptors of a server with any number of loops: standard input, output and error, two of the
// shared pool, signals, the end of the loops, and a spare one for refused connections.
constexpr std::size_t descriptors_of_process = 8;
// A loop has its backend, its wake-up and a listener.
constexpr std::size_t descriptors_of_loop = 3;

/// Checks that a server can accept connections: it needs a descriptor for each one.
void check_descriptors(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!facts.open_files_max) return;
  const std::uint64_t all = *facts.open_files_max;
  const std::uint64_t own = demands.descriptors_own.value_or(descriptors_of_process +
                                                             descriptors_of_loop * demands.cores);
  const std::uint64_t connections = demands.connections_max.value_or(1);
  if (all >= own + connections) return;
  const std::uint64_t left = all > own ? all - own : 0;
  Finding finding{.check = "descriptors", .severity = Severity::limits};
  finding.found = "at most " + std::to_string(all) + " open files (RLIMIT_NOFILE)";
  finding.wanted = std::to_string(own + connections) + " for " + std::to_string(connections) +
                   (connections == 1 ? " connection" : " connections");
  finding.consequence = "room for " + std::to_string(left) + " connections; others wait";
  if (left == 0) {
    finding.severity = Severity::fatal;
    finding.consequence = "the server listens, but answers no client";
  }
  // A server that asked for nothing else gets the usual limit of Linux.
  const std::uint64_t enough = std::max<std::uint64_t>(own + connections, 1024);
  finding.remedy = "ulimit -n " + std::to_string(enough) + ", or LimitNOFILE= in its unit";
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> check_machine(const MachineFacts& facts, const Demands& demands) {
  Findings findings;
  check_descriptors(facts, demands, findings);
  return findings;
}

}  // namespace weir
