// The page about memory: by kind, against its bound, and over time.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"

namespace weir::admin {
namespace {

struct Growth {
  std::string_view key;
  std::string_view label;
  std::uint64_t CoreReport::* value;
  bool bytes;
};
constexpr std::array growing{
    Growth{"frames", "coroutine frames", &CoreReport::frames_in_use, false},
    Growth{"buffers", "buffers", &CoreReport::buffers_in_use, false},
    Growth{"blocks", "blocks: frames, buffers and others", &CoreReport::blocks_in_use, false},
    Growth{"cached", "free blocks, kept for later", &CoreReport::cached_bytes, true},
    Growth{"streams", "open streams", &CoreReport::connections, false},
    Growth{"inbox", "items in inboxes", &CoreReport::inbox_depth, false},
};

/// Returns the minutes since the oldest sample; nullopt if they are too few to show a growth.
std::optional<double> observed_minutes(const RuntimeView& view) {
  if (view.seen.oldest_age < std::chrono::seconds(5)) return std::nullopt;
  return std::chrono::duration<double, std::ratio<60>>(view.seen.oldest_age).count();
}

/// Returns the growth of a value for each minute; it may be negative.
std::optional<double> growth_of(const RuntimeView& view, std::uint64_t CoreReport::* value) {
  const auto minutes = observed_minutes(view);
  if (!minutes) return std::nullopt;
  return (static_cast<double>(sum_of(view.seen.now, value)) -
          static_cast<double>(sum_of(view.seen.oldest, value))) /
         *minutes;
}

/// Returns true if a value has grown by half, and by at least 500, in at least 20 seconds.
bool grows_much(const RuntimeView& view, std::uint64_t CoreReport::* value) {
  const std::uint64_t now = sum_of(view.seen.now, value);
  const std::uint64_t before = sum_of(view.seen.oldest, value);
  return view.seen.oldest_age >= std::chrono::seconds(20) && now > before + before / 2 &&
         now - before >= 500;
}

/// Returns the growth of the resident memory for each minute, in bytes.
std::optional<double> resident_growth(const RuntimeView& view) {
  const auto minutes = observed_minutes(view);
  if (!view.seen.resident_bytes || !view.seen.oldest_resident_bytes || !minutes) return {};
  return (static_cast<double>(*view.seen.resident_bytes) -
          static_cast<double>(*view.seen.oldest_resident_bytes)) /
         *minutes;
}

/// Returns true if the process has grown by half, and by at least 32 MiB, in at least 20 seconds.
bool resident_grows(const RuntimeView& view) {
  if (!view.seen.resident_bytes || !view.seen.oldest_resident_bytes) return false;
  const std::uint64_t now = *view.seen.resident_bytes;
  const std::uint64_t before = *view.seen.oldest_resident_bytes;
  constexpr std::uint64_t growth_min = 32 * 1024 * 1024;
  return view.seen.oldest_age >= std::chrono::seconds(20) && now > before + before / 2 &&
         now - before >= growth_min;
}

/// Returns the share of the bound that the resident memory without that of files has. The bound is
/// that of the server; the program's own memory is in the share too.
std::optional<double> bound_share(const RuntimeView& view) {
  if (!view.bound || view.bound->total() == 0 || !view.memory) return std::nullopt;
  const std::uint64_t own = view.memory->resident_bytes - view.memory->file_bytes;
  return static_cast<double>(own) / static_cast<double>(view.bound->total());
}

Section process_section(const RuntimeView& view) {
  Section process{.key = "process", .title = "Process"};
  if (view.memory) {
    const std::uint64_t own = view.memory->resident_bytes - view.memory->file_bytes;
    process.facts = {
        {"resident_bytes", "resident memory", Cell::bytes(view.memory->resident_bytes)},
        {"own_bytes", "of it heap, buffers and stacks", Cell::bytes(own)},
        {"file_bytes", "of it program and libraries", Cell::bytes(view.memory->file_bytes)}};
  } else {
    process.facts = {{"resident_bytes", "resident memory", Cell()}};
  }
  if (const auto growth = resident_growth(view)) {
    const Tone tone = resident_grows(view) ? Tone::warning : Tone::plain;
    process.facts.push_back({"growth_mib_per_minute", "growth, in MiB a minute",
                             Cell::rate(*growth / (1024 * 1024)).with(tone)});
  }
  if (!view.bound) return process;
  process.facts.push_back(
      {"bound_bytes", "upper bound of the server", Cell::bytes(view.bound->total())});
  if (const auto share = bound_share(view)) {
    const Tone tone = *share > 1 ? Tone::warning : Tone::plain;
    process.facts.push_back(
        {"bound_share", "heap, buffers and stacks, of this bound", Cell::share(*share).with(tone)});
  }
  process.facts.push_back(
      {"bound_connection_bytes", "bound of a connection", Cell::bytes(view.bound->connection)});
  process.facts.push_back({"bound_idle_connection_bytes", "bound of an idle connection",
                           Cell::bytes(view.bound->idle_connection)});
  return process;
}

/// Returns the past, so that a leak is a column of numbers that only grow downwards in time.
Section history_section(const RuntimeView& view) {
  Section table{.key = "history", .title = "The last ten minutes"};
  table.note =
      "A value that is larger in each row than in the row below it is a leak. The pages keep a row "
      "each 15 s while they are requested.";
  table.when_empty = "These are the first values.";
  table.columns = {{"age_seconds", "ago"}, {"resident_bytes", "resident memory"},
                   {"frames", "frames"},   {"buffers", "buffers"},
                   {"blocks", "blocks"},   {"streams", "open streams"}};
  for (const MemorySample& each : view.seen.memory) {
    table.rows.push_back({Cell::time(each.age),
                          each.resident_bytes ? Cell::bytes(*each.resident_bytes) : Cell(),
                          Cell::number(each.frames), Cell::number(each.buffers),
                          Cell::number(each.blocks), Cell::number(each.connections)});
  }
  return table;
}

}  // namespace

void find_memory_faults(const RuntimeView& view, Findings& findings) {
  for (const Growth& each : growing) {
    if (each.bytes || !grows_much(view, each.value)) continue;
    findings.push_back({Tone::warning,
                        std::string(each.label) + " grew from " +
                            Cell::number(sum_of(view.seen.oldest, each.value)).to_text() + " to " +
                            Cell::number(sum_of(view.seen.now, each.value)).to_text() + " in " +
                            Cell::time(view.seen.oldest_age).to_text() + ", which may be a leak",
                        "memory", "the page of tasks shows which kind of task is frequent"});
  }
  if (resident_grows(view)) {
    findings.push_back({Tone::warning,
                        "resident memory grew from " +
                            Cell::bytes(*view.seen.oldest_resident_bytes).to_text() + " to " +
                            Cell::bytes(*view.seen.resident_bytes).to_text() + " in " +
                            Cell::time(view.seen.oldest_age).to_text() + ", which may be a leak",
                        "memory", "compare the kinds on the page of memory"});
  }
}

Page memory_page(const RuntimeView& view) {
  Page page{.name = "memory", .title = "Memory"};
  page.note = "Growth is that of the last " + Cell::time(view.seen.oldest_age).to_text() + ".";
  page.sections.push_back(process_section(view));
  Section kinds{.key = "kinds", .title = "By kind"};
  kinds.columns = {{"kind", "kind"}, {"now", "now"}, {"growth_per_minute", "growth/minute"}};
  for (const Growth& each : growing) {
    const std::uint64_t now = sum_of(view.seen.now, each.value);
    const Tone tone = grows_much(view, each.value) && !each.bytes ? Tone::warning : Tone::plain;
    const auto growth = growth_of(view, each.value);
    kinds.rows.push_back({each.label, each.bytes ? Cell::bytes(now) : Cell::number(now),
                          growth ? Cell::rate(*growth).with(tone) : Cell()});
  }
  page.sections.push_back(std::move(kinds));
  page.sections.push_back(history_section(view));
  Section cores{.key = "cores", .title = "By core"};
  cores.columns = {{"core", "core"},
                   {"frames", "frames"},
                   {"buffers", "buffers"},
                   {"blocks", "blocks"},
                   {"cached_bytes", "free blocks"},
                   {"streams", "streams"}};
  for (const CoreReport& core : view.seen.now.cores) {
    cores.rows.push_back({Cell::number(core.core), Cell::number(core.frames_in_use),
                          Cell::number(core.buffers_in_use), Cell::number(core.blocks_in_use),
                          Cell::bytes(core.cached_bytes), Cell::number(core.connections)});
  }
  page.sections.push_back(std::move(cores));
  return page;
}

}  // namespace weir::admin
