// Loads and reloads of configurations, and the rules for them.
#include "tools/simulate/config_scenario.hpp"

#include <cerrno>
#include <utility>

#include "weir/config/reload.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t loads = 30;
constexpr std::size_t reloads = 20;
constexpr Duration poll_interval = std::chrono::seconds(1);
constexpr Duration debounce_time = std::chrono::milliseconds(200);
// Two reads, and slow turns between them.
constexpr Duration applied_within = 2 * (poll_interval + debounce_time) + std::chrono::seconds(1);
constexpr int tries_max = 100;

/// Returns true if one of the errors is that of a read that failed.
bool is_unreadable(const config::Errors& errors) {
  return errors.message().contains(system_error(EIO).message());
}

}  // namespace

void ConfigReader::fail_with(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

/// Returns the sources of an input, with the file named in one of four ways.
config::Sources ConfigReader::sources_of(const ConfigInput& input) {
  config::Sources sources;
  sources.program = "service";
  sources.prefix = "APP";
  sources.environment = input.environment;
  sources.arguments = input.arguments;
  const std::string path = ConfigInput::path;
  sources.file = "/none.toml";
  switch (random_.below(4)) {
    case 0:
      sources.arguments.insert(sources.arguments.begin(), "--config=" + path);
      break;
    case 1:
      sources.arguments.insert(sources.arguments.begin(), {"--config", path});
      break;
    case 2:
      sources.environment.push_back("APP_CONFIG=" + path);
      break;
    default:
      sources.file = path;
      break;
  }
  return sources;
}

Task<> ConfigReader::load_some(loop::FileSystem& files) {
  for (std::size_t left = loads; left > 0 && violation_.empty(); --left) {
    ConfigInput input = ConfigInput::draw(random_, {});
    const ConfigInput right = input;
    if (change_) change_(input);
    let_files_fail(true);
    co_await write_whole_file(input.file);
    const auto loaded = load(files, sources_of(input));
    let_files_fail(false);
    const std::string difference = find_difference(loaded, right);
    if (!difference.empty()) fail_with(difference + "\n" + input.file);
    ++done_;
  }
}

/// Loads, and tries again while a read fails. A read that fails must be an error.
config::LoadResult<ServiceConfig> ConfigReader::load(loop::FileSystem& files,
                                                     const config::Sources& sources) {
  for (;;) {
    const std::uint64_t before = failures();
    auto loaded = config::load<ServiceConfig>(files, sources);
    if (failures() == before) return loaded;
    if (loaded || !is_unreadable(loaded.error())) fail_with("a failed read is not an error");
  }
}

/// Writes the file, and tries again while a write or sync fails.
Task<> ConfigReader::write_whole_file(std::string text) {
  for (int tries = 0; tries < tries_max; ++tries) {
    const std::uint64_t before = failures();
    const auto written = co_await files::write_file(ConfigInput::path, text);
    if (written) {
      written_ = text;
      co_return;
    }
    if (failures() == before) fail_with("not written: " + written.error().message());
    co_await check_file_after_failure(text);
  }
  fail_with("not written: each write failed");
}

/// Checks the file after a write of `text` has failed.
Task<> ConfigReader::check_file_after_failure(std::string_view text) {
  let_files_fail(false);
  const auto found = co_await files::read_file(ConfigInput::path);
  const bool none = !found && found.error() == std::errc::no_such_file_or_directory;
  if (!none && (!found || (*found != written_ && *found != text))) {
    fail_with("a failed write left another file");
  }
  let_files_fail(true);
}

/// Writes the file as a whole, or in two parts between which it is not complete.
Task<> ConfigReader::write_file(std::string text) {
  if (random_.bernoulli(0.5)) {
    co_await write_whole_file(text.substr(0, text.size() / 2));
    std::ignore = co_await sleep(random_.between({}, debounce_time / 4));
  }
  co_await write_whole_file(std::move(text));
}

/// Loads a file, and changes it again and again while a task follows it.
Task<> ConfigReader::follow_file(loop::FileSystem& files) {
  ConfigInput now = ConfigInput::draw(random_, {.wrong = 0});
  co_await write_file(now.file);
  const config::Sources sources = sources_of(now);
  auto first = config::load<ServiceConfig>(files, sources);
  if (!first) {
    fail_with(first.error().message());
    co_return;
  }
  Reports reports;
  config::ReloadOptions options{.poll_interval = poll_interval, .debounce_time = debounce_time};
  options.on_rejected = [&reports](const config::Errors& errors) {
    if (is_unreadable(errors)) {
      ++reports.unreadable;
      return;
    }
    ++reports.rejected;
    reports.errors = errors;
  };
  config::Reloadable<ServiceConfig> live(std::move(*first), sources, options);
  reports.offset = now.expected.offset;
  const auto subscription =
      live.on_change(&ServiceConfig::offset, [&reports](const std::int8_t& offset) {
        ++reports.changed;
        reports.offset = offset;
      });
  const auto change_file = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(live.watch());
    for (std::size_t left = reloads; left > 0 && violation_.empty(); --left) {
      co_await change(reports, now);
      if (to_text(*live.current()) != to_text(now.expected)) {
        fail_with(to_text(*live.current()) + "\ninstead of\n" + to_text(now.expected));
      }
      ++done_;
    }
    scope.cancel();
    co_return {};
  };
  std::ignore = co_await with_scope(OnFailure::isolate, change_file);
}

/// Writes another file or removes it, waits until it is applied, and checks what was reported.
Task<> ConfigReader::change(Reports& reports, ConfigInput& now) {
  ConfigInput next = ConfigInput::draw_file(random_, now, 0.04);
  const ConfigInput right = next;
  if (change_) change_(next);
  const bool vanishes = random_.bernoulli(0.1);
  reports.rejected = reports.changed = reports.unreadable = 0;
  let_files_fail(true);
  if (vanishes) {
    std::ignore = co_await files::remove(ConfigInput::path);
  } else {
    co_await write_file(next.file);
  }
  if (files_fail_) std::ignore = co_await sleep(random_.between({}, 3 * poll_interval));
  let_files_fail(false);
  std::ignore = co_await sleep(applied_within);
  const bool is_wrong = !vanishes && !right.errors.empty();
  const bool differs = !vanishes && !is_wrong && right.expected.offset != now.expected.offset;
  if (!vanishes && !is_rejection_count_right(reports, is_wrong)) {
    fail_with("a file was rejected " + std::to_string(reports.rejected) +
              " times: " + reports.errors.message());
  }
  if (reports.unreadable != 0 && !files_fail_) fail_with("a file could not be read");
  reports.was_wrong = is_wrong;
  const std::string difference = is_wrong ? find_difference(reports.errors, right) : "";
  if (!difference.empty()) fail_with(difference + "\n" + next.file);
  if (!vanishes && !is_wrong) now = right;
  if (reports.changed != (differs ? 1U : 0U) || reports.offset != now.expected.offset) {
    fail_with("a subscriber was called " + std::to_string(reports.changed) + " times");
  }
}

/// Returns true if a file was reported as often as it may be. A file that has vanished may be
/// reported, if the user has named it. A wrong file is reported again after it could not be read.
bool ConfigReader::is_rejection_count_right(const Reports& reports, bool is_wrong) const {
  if (files_fail_ && is_wrong) return reports.rejected >= 1;
  if (files_fail_ && reports.was_wrong) return true;
  return reports.rejected == (is_wrong ? 1U : 0U);
}

Task<> ConfigReader::run(Scope& scope) {
  loop::Platform& host = scope.loop().platform();
  random_ = sim::Random(host.random());
  files_fail_ = random_.bernoulli(0.5);
  co_await load_some(host.files());
  co_await follow_file(host.files());
  ended_ = true;
}

std::string ConfigReader::find_violation() const {
  return violation_.empty() && !ended_ ? "the reader has not ended" : violation_;
}

Outcome run_config(const sim::WorldOptions& options, const ConfigReader::ChangeInput& change) {
  sim::World world(options);
  ConfigReader reader(world.faults(), change);
  world.host("reader").start([&reader](loop::Platform& host) {
    return Runtime(host, {.cores = 1, .announce = false}).run_on_each_core([&reader](Scope& scope) {
      return reader.run(scope);
    });
  });
  world.check("config", [&reader] { return reader.find_violation(); });
  Outcome outcome{.report = world.run_until_done(std::chrono::hours(1))};
  outcome.trace = world.trace();
  outcome.answered = reader.done();
  outcome.injected_faults = world.faults().injected();
  return outcome;
}

Outcome with_config(const sim::WorldOptions& options) {
  return run_config(options, {});
}

}  // namespace weir::simulate
