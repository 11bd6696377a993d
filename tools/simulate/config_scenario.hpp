// Simulates programs that load configurations, and that follow a file which changes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/simulate/config_input.hpp"
#include "tools/simulate/scenarios.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// A ConfigReader loads random configurations, and then follows a file. The test requires these
/// rules:
/// - a load returns the value of the last source that gives one, or all errors and only these;
/// - a new file is applied as a whole, once it has not changed for a while;
/// - a wrong file is reported once, and changes nothing;
/// - a subscriber is called exactly if its part has changed.
/// Threads: those of one World.
/// Lifetime: outlives its run.
class ConfigReader {
 public:
  /// Changes what the sources give, but not what the reader expects. The test must find a
  /// violation then.
  using ChangeInput = std::function<void(ConfigInput& input)>;

  explicit ConfigReader(ChangeInput change = {}) : change_(std::move(change)) {}

  Task<> run(Scope& scope);
  std::string find_violation() const;
  /// Returns the number of loads and reloads.
  std::size_t done() const noexcept { return done_; }

 private:
  /// The reports of a Reloadable since the last change of the file.
  struct Reports {
    std::size_t rejected = 0;
    std::size_t changed = 0;
    config::Errors errors;
    std::int8_t offset = 0;  // as the subscriber knows it
  };

  Task<> load_some(FileSystem& files);
  Task<> follow_file(FileSystem& files);
  Task<> change(Reports& reports, ConfigInput& now);
  Task<> write_file(std::string text);
  config::Sources sources_of(const ConfigInput& input);
  void fail_with(const std::string& what);

  ChangeInput change_;
  sim::Random random_{0};
  std::size_t done_ = 0;
  bool ended_ = false;
  std::string violation_;
};

/// Runs a reader in a World.
Outcome run_config(const sim::WorldOptions& options, const ConfigReader::ChangeInput& change);
/// Runs it as a scenario.
Outcome with_config(const sim::WorldOptions& options);

}  // namespace weir::simulate
