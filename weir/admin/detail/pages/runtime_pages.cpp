// The pages about cores, slow turns and timers, and the summary of a runtime.
#include "weir/admin/detail/pages/runtime_pages.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::admin {
namespace {

constexpr double busy_share = 0.9;
constexpr Duration slow_answer = std::chrono::milliseconds(50);

const auto requests_of = [](const CoreReport& core) { return metric_of(core, "http requests"); };

/// Returns the answer of a core; nullptr if the cores were not asked.
const CoreAnswer* answer_of(const RuntimeView& view, std::size_t core) {
  return core < view.cores.size() ? &view.cores[core] : nullptr;
}

Cell answer_cell(const CoreAnswer* answer) {
  if (answer == nullptr) return {};
  if (answer->answered) return Cell("answers").with(Tone::good);
  return Cell("no answer since " + Cell::time(answer->waited).to_text()).with(Tone::bad);
}

Tone busy_tone(double busy) {
  return busy >= busy_share ? Tone::warning : Tone::plain;
}

}  // namespace

double recent_busy(const RuntimeView& view, std::size_t core) {
  const CoreReport& now = view.seen.now.cores[core];
  if (core >= view.seen.recent.cores.size() || view.seen.recent_age <= Duration::zero()) return 0;
  const CoreReport& before = view.seen.recent.cores[core];
  // In a simulation there is no CPU time.
  const Duration worked = now.cpu_time > Duration::zero() ? now.cpu_time - before.cpu_time
                                                          : now.run_time - before.run_time;
  const std::chrono::duration<double> part = worked;
  return std::clamp(part / std::chrono::duration<double>(view.seen.recent_age), 0.0, 1.0);
}

void find_core_faults(const RuntimeView& view, Findings& findings) {
  for (std::size_t i = 0; i < view.seen.now.cores.size(); ++i) {
    const std::string name = "core " + std::to_string(view.seen.now.cores[i].core);
    const CoreAnswer* const answer = answer_of(view, i);
    if (answer != nullptr && !answer->answered) {
      findings.push_back({Tone::bad,
                          name + " does not answer since " + Cell::time(answer->waited).to_text() +
                              ": a task blocks it",
                          "cores", "the page of tasks names the function that it runs"});
      continue;
    }
    if (answer != nullptr && answer->waited > slow_answer) {
      findings.push_back({Tone::warning,
                          name + " answered after " + Cell::time(answer->waited).to_text(), "cores",
                          "look for slow turns"});
    }
    const double busy = recent_busy(view, i);
    if (busy < busy_share) continue;
    findings.push_back({Tone::warning, name + " is " + Cell::share(busy).to_text() + " busy",
                        "cores", "take a profile, or add cores"});
  }
}

void find_slow_turns(const RuntimeView& view, Findings& findings) {
  if (view.seen.now.stalls.empty()) return;
  constexpr std::string_view remedy = "move the work of this task to a pool, or divide it";
  const std::uint64_t before = sum_of(view.seen.recent, &CoreReport::slow_turns);
  const std::uint64_t slow = sum_of(view.seen.now, &CoreReport::slow_turns);
  const loop::StallSummary& worst = view.seen.now.stalls.front();
  const std::string cause =
      "; most by " + worst.name + " (up to " + Cell::time(worst.longest).to_text() + ")";
  if (view.seen.recent_age > Duration::zero() && slow > before) {
    findings.push_back({Tone::bad,
                        std::to_string(slow - before) + " slow turns in the last " +
                            Cell::time(view.seen.recent_age).to_text() + cause,
                        "slow_turns", std::string(remedy)});
  } else {
    findings.push_back({Tone::warning, std::to_string(slow) + " slow turns since the start" + cause,
                        "slow_turns", std::string(remedy)});
  }
}

Section summary_section(const RuntimeView& view) {
  double busy = 0;
  const std::size_t cores = view.seen.now.cores.size();
  for (std::size_t i = 0; i < cores; ++i) busy += recent_busy(view, i);
  if (cores > 0) busy /= static_cast<double>(cores);
  Section section{.key = "summary", .title = "Now"};
  section.facts = {
      {"cores", "cores", Cell::number(cores).linked("cores")},
      {"busy", "busy", Cell::share(busy).with(busy_tone(busy))},
      {"requests_per_second", "requests a second", Cell::rate(total_rate(view, requests_of))},
      {"connections", "open connections",
       Cell::number(view.seen.now.connections).linked("connections")},
      {"slow_turns", "slow turns",
       Cell::number(sum_of(view.seen.now, &CoreReport::slow_turns)).linked("slow_turns")},
      {"resident_bytes", "resident memory",
       view.memory ? Cell::bytes(view.memory->resident_bytes).linked("memory") : Cell()},
      {"observed_seconds", "observed since", Cell::time(view.seen.up)}};
  return section;
}

Page cores_page(const RuntimeView& view) {
  std::string note = "Rates are those of the last " + Cell::time(view.seen.recent_age).to_text() +
                     ". A core that does not answer runs a task that blocks it.";
  Section table;
  table.columns = {{"core", "core"},
                   {"busy", "busy"},
                   {"state", "state"},
                   {"requests_per_second", "requests/s"},
                   {"turns_per_second", "turns/s"},
                   {"runs_per_second", "runs/s"},
                   {"system_calls_per_second", "system calls/s"},
                   {"received_per_second", "bytes in/s"},
                   {"sent_per_second", "bytes out/s"},
                   {"streams", "streams"},
                   {"inbox", "inbox"},
                   {"slow_turns", "slow turns"},
                   {"backend", "backend"}};
  for (std::size_t i = 0; i < view.seen.now.cores.size(); ++i) {
    const CoreReport& core = view.seen.now.cores[i];
    const auto rate = [&](std::uint64_t CoreReport::* value) {
      return recent_rate(view, i, [value](const CoreReport& of) { return of.*value; });
    };
    const double busy = recent_busy(view, i);
    table.rows.push_back(
        {Cell::number(core.core), Cell::share(busy).with(busy_tone(busy)),
         answer_cell(answer_of(view, i)), Cell::rate(recent_rate(view, i, requests_of)),
         Cell::rate(rate(&CoreReport::turns)), Cell::rate(rate(&CoreReport::runs)),
         Cell::rate(rate(&CoreReport::system_calls)),
         Cell::bytes(static_cast<std::uint64_t>(rate(&CoreReport::bytes_received))),
         Cell::bytes(static_cast<std::uint64_t>(rate(&CoreReport::bytes_sent))),
         Cell::number(core.connections), Cell::number(core.inbox_depth),
         Cell::number(core.slow_turns).with(core.slow_turns > 0 ? Tone::warning : Tone::plain),
         core.backend});
  }
  Page page = table_page("cores", "Cores", std::move(note), std::move(table));
  Section counters{.key = "counters", .title = "Counters since the start"};
  counters.columns = {{"name", "counter"}, {"total", "total"}, {"per_second", "per second"}};
  const CoreReport total = view.seen.now.total();
  for (std::size_t i = 0; i < total.metrics.size(); ++i) {
    const Metric& each = total.metrics[i];
    const double rate =
        total_rate(view, [&](const CoreReport& core) { return metric_at(core, i, each.name); });
    counters.rows.push_back({each.name, Cell::number(each.value),
                             each.kind == Metric::Kind::counter ? Cell::rate(rate) : Cell()});
  }
  page.sections.push_back(std::move(counters));
  return page;
}

Page slow_turns_page(const RuntimeView& view) {
  std::string note =
      "A turn of a loop is slow if it runs for longer than 50 ms. All other tasks of the core wait "
      "meanwhile. Move the work to a pool, or divide it.";
  Section table{.when_empty = "There was no slow turn."};
  table.columns = {{"cause", "cause"},
                   {"turns", "turns"},
                   {"recent", "in the last seconds"},
                   {"longest_seconds", "longest"}};
  for (const loop::StallSummary& each : view.seen.now.stalls) {
    const auto before =
        std::ranges::find(view.seen.recent.stalls, each.name, &loop::StallSummary::name);
    const std::uint64_t old = before == view.seen.recent.stalls.end() ? 0 : before->turns;
    const std::uint64_t recent = each.turns > old ? each.turns - old : 0;
    table.rows.push_back({each.name, Cell::number(each.turns),
                          Cell::number(recent).with(recent > 0 ? Tone::bad : Tone::plain),
                          Cell::time(each.longest)});
  }
  return table_page("slow_turns", "Slow turns", std::move(note), std::move(table));
}

Page timers_page(const RuntimeView& view) {
  Section table;
  table.columns = {{"core", "core"},          {"state", "state"},
                   {"armed", "armed timers"}, {"next_seconds", "next is due in"},
                   {"draining", "draining"},  {"answer_seconds", "answered after"},
                   {"took_seconds", "took"}};
  for (const CoreAnswer& each : view.cores) {
    const CoreSnapshot& core = *each.snapshot;
    Cell next;
    if (each.answered && core.next_timer) next = Cell::time(*core.next_timer);
    table.rows.push_back({Cell::number(each.core), answer_cell(&each), Cell::number(core.timers),
                          std::move(next), Cell::flag(core.draining), Cell::time(each.waited),
                          Cell::time(core.took)});
  }
  return table_page("timers", "Timers",
                    "Each core reads its own timers. \"Took\" is the time that the core needed for "
                    "its snapshot, with its connections and clients.",
                    std::move(table));
}

}  // namespace weir::admin
