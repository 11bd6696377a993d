// simulate: runs scenarios in a World, for many fresh seeds or for one again.
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

struct Wanted {
  std::uint64_t seeds = 100;
  std::optional<std::uint64_t> seed;
  std::string_view only;
  bool trace = false;
};

[[noreturn]] void explain(int status) {
  std::FILE* const out = status == 0 ? stdout : stderr;
  std::fprintf(out,
               "usage: simulate [--seeds N | --seed N [--trace]] [--only SCENARIO]\n"
               "Runs Weir in simulated Worlds; 100 fresh seeds of each scenario unless told.\n");
  for (const Scenario& each : scenarios()) {
    std::fprintf(out, "  %-12s %s\n", std::string(each.name).c_str(),
                 std::string(each.what).c_str());
  }
  std::exit(status);
}

/// For the test that compares runs of processes of which no address is the same.
[[noreturn]] void tell_addresses() {
  const auto heap = std::make_unique<int>(0);
  std::printf("stack=%p heap=%p program=%p\n", static_cast<const void*>(&heap),
              static_cast<const void*>(heap.get()), reinterpret_cast<const void*>(&tell_addresses));
  std::exit(0);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) explain(2);
  return value;
}

Wanted parse(int argc, char** argv) {
  Wanted wanted;
  for (int at = 1; at < argc; ++at) {
    const std::string_view name = argv[at];
    if (name == "--help") explain(0);
    if (name == "--addresses") tell_addresses();
    if (name == "--trace") {
      wanted.trace = true;
      continue;
    }
    if (++at == argc) explain(2);
    if (name == "--seeds") {
      wanted.seeds = number(argv[at]);
    } else if (name == "--seed") {
      wanted.seed = number(argv[at]);
    } else if (name == "--only") {
      wanted.only = argv[at];
      if (find_scenario(wanted.only) == nullptr) explain(2);
    } else {
      explain(2);
    }
  }
  return wanted;
}

/// Returns whether all went well; stops at the first seed that does not.
bool run(const Scenario& scenario, const Wanted& wanted) {
  std::uint64_t struck = 0;
  std::size_t answered = 0;
  const std::uint64_t count = wanted.seed ? 1 : wanted.seeds;
  for (std::uint64_t done = 0; done < count; ++done) {
    const std::uint64_t seed = wanted.seed ? *wanted.seed : fresh_seed();
    const Outcome outcome = scenario.run(options_for(scenario, seed, wanted.trace));
    std::fwrite(outcome.trace.data(), 1, outcome.trace.size(), stdout);
    struck += outcome.struck;
    answered += outcome.answered;
    if (outcome.report.ok()) continue;
    std::fprintf(stderr, "%s: %s", std::string(scenario.name).c_str(),
                 outcome.report.text().c_str());
    return false;
  }
  std::fprintf(stderr, "%s: %llu seeds, %zu requests answered, %llu faults struck, all well\n",
               std::string(scenario.name).c_str(), static_cast<unsigned long long>(count), answered,
               static_cast<unsigned long long>(struck));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Wanted wanted = parse(argc, argv);
  bool well = true;
  for (const Scenario& each : scenarios()) {
    if (!wanted.only.empty() && each.name != wanted.only) continue;
    well = run(each, wanted) && well;
  }
  return well ? 0 : 1;
}
