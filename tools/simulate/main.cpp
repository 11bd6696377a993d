// Runs scenarios in a World, for many fresh seeds or again for one seed.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/simulate/scenarios.hpp"

namespace {

using namespace weir;
using namespace weir::simulate;

struct Options {
  std::uint64_t seeds = 100;
  std::optional<std::uint64_t> seed;
  std::string_view only;
  bool trace = false;
};

[[noreturn]] void print_usage(int status) {
  std::FILE* const out = status == 0 ? stdout : stderr;
  std::fprintf(out,
               "usage: simulate [--seeds N | --seed N [--trace]] [--only SCENARIO]\n"
               "Runs Weir in simulated Worlds; the default is 100 fresh seeds of each scenario.\n");
  for (const Scenario& each : scenarios()) {
    std::fprintf(out, "  %-12s %s\n", std::string(each.name).c_str(),
                 std::string(each.what).c_str());
  }
  std::exit(status);
}

/// Prints addresses, for a test that compares runs of processes with different address spaces.
[[noreturn]] void print_addresses() {
  const auto heap = std::make_unique<int>(0);
  std::printf("stack=%p heap=%p program=%p\n", static_cast<const void*>(&heap),
              static_cast<const void*>(heap.get()),
              reinterpret_cast<const void*>(&print_addresses));
  std::exit(0);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) print_usage(2);
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; ++at) {
    const std::string_view name = argv[at];
    if (name == "--help") print_usage(0);
    if (name == "--addresses") print_addresses();
    if (name == "--trace") {
      options.trace = true;
      continue;
    }
    if (++at == argc) print_usage(2);
    if (name == "--seeds") {
      options.seeds = number(argv[at]);
    } else if (name == "--seed") {
      options.seed = number(argv[at]);
    } else if (name == "--only") {
      options.only = argv[at];
      if (find_scenario(options.only) == nullptr) print_usage(2);
    } else {
      print_usage(2);
    }
  }
  return options;
}

/// Returns true if all seeds passed. Stops at the first seed that fails.
bool run(const Scenario& scenario, const Options& options) {
  std::uint64_t injected_faults = 0;
  std::size_t answered = 0;
  const std::uint64_t count = options.seed ? 1 : options.seeds;
  for (std::uint64_t done = 0; done < count; ++done) {
    const std::uint64_t seed = options.seed ? *options.seed : sim::fresh_seed();
    const Outcome outcome = scenario.run(options_for(scenario, seed, options.trace));
    std::fwrite(outcome.trace.data(), 1, outcome.trace.size(), stdout);
    injected_faults += outcome.injected_faults;
    answered += outcome.answered;
    if (outcome.report.ok()) continue;
    std::fprintf(stderr, "%s: %s", std::string(scenario.name).c_str(),
                 outcome.report.text().c_str());
    return false;
  }
  std::fprintf(stderr, "%s: %llu seeds, %zu requests answered, %llu faults injected, all passed\n",
               std::string(scenario.name).c_str(), static_cast<unsigned long long>(count), answered,
               static_cast<unsigned long long>(injected_faults));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  bool well = true;
  for (const Scenario& each : scenarios()) {
    if (!options.only.empty() && each.name != options.only) continue;
    well = run(each, options) && well;
  }
  return well ? 0 : 1;
}
