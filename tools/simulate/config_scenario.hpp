// Simulates programs that load configurations, and that follow a file which changes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/simulate/config_input.hpp"
#include "tools/simulate/scenarios.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/sim/faults.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// A ConfigReader loads random configurations, and then follows a file. In half of the runs, some
/// reads, writes and syncs of the file fail. The test requires these rules:
/// - a load returns the value of the last source that gives one, or all errors and only these;
/// - a new file is applied as a whole, once it has not changed for a while;
/// - a wrong file is reported once, and changes nothing;
/// - a subscriber is called exactly if its part has changed;
/// - a write that fails leaves the old file or the whole new one;
/// - a file that cannot be read is an error of a load, and changes nothing.
/// Threads: those of one World.
/// Lifetime: outlives its run.
class ConfigReader {
 public:
  /// Changes what the sources give, but not what the reader expects. The test must find a
  /// violation then.
  using ChangeInput = std::function<void(ConfigInput& input)>;

  explicit ConfigReader(sim::FaultInjector& faults, ChangeInput change = {})
      : faults_(faults), change_(std::move(change)) {}

  Task<> run(Scope& scope);
  std::string find_violation() const;
  /// Returns the number of loads and reloads.
  std::size_t done() const noexcept { return done_; }

 private:
  /// The reports of a Reloadable since the last change of the file.
  struct Reports {
    std::size_t rejected = 0;
    std::size_t unreadable = 0;  // reports of reads that failed
    std::size_t changed = 0;
    bool was_wrong = false;  // true if the file before was rejected
    config::Errors errors;
    std::int8_t offset = 0;  // as the subscriber knows it
  };

  Task<> load_some(loop::FileSystem& files);
  Task<> follow_file(loop::FileSystem& files);
  Task<> change(Reports& reports, ConfigInput& now);
  Task<> write_file(std::string text);
  Task<> write_whole_file(std::string text);
  Task<> check_file_after_failure(std::string_view text);
  config::LoadResult<ServiceConfig> load(loop::FileSystem& files, const config::Sources& sources);
  void let_files_fail(bool fail) { faults_.rates.file_failure = fail && files_fail_ ? 0.1 : 0; }
  std::uint64_t failures() const { return faults_.injected(sim::Fault::file_failure); }
  config::Sources sources_of(const ConfigInput& input);
  bool is_rejection_count_right(const Reports& reports, bool is_wrong) const;
  void fail_with(const std::string& what);

  sim::FaultInjector& faults_;
  ChangeInput change_;
  sim::Random random_{0};
  bool files_fail_ = false;
  std::string written_;  // the last text that was written without an error
  std::size_t done_ = 0;
  bool ended_ = false;
  std::string violation_;
};

/// Runs a reader in a World.
Outcome run_config(const sim::WorldOptions& options, const ConfigReader::ChangeInput& change);
/// Runs it as a scenario.
Outcome with_config(const sim::WorldOptions& options);

}  // namespace weir::simulate
