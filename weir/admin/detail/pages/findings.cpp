// The findings about a runtime, in one line each.
#include <algorithm>
#include <string>
#include <utility>

#include "weir/admin/detail/pages/runtime_pages.hpp"

namespace weir::admin {
namespace {

/// Keeps the first findings of each page, and replaces the others by one line.
Findings shortened(Findings all) {
  constexpr std::size_t each_max = 5;
  Findings kept;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && all[end].page == all[begin].page) ++end;
    const std::size_t last = std::min(end, begin + each_max);
    for (std::size_t i = begin; i < last; ++i) kept.push_back(std::move(all[i]));
    if (last < end) {
      kept.push_back(
          {Tone::warning, std::to_string(end - last) + " more of this kind", kept.back().page, {}});
    }
    begin = end;
  }
  return kept;
}

}  // namespace

void find_machine_faults(const RuntimeView& view, Findings& findings) {
  for (const checks::Finding& each : view.machine) {
    const bool fatal = each.severity == checks::Severity::fatal;
    const std::string wanted = each.wanted.empty() ? "" : ", wanted " + each.wanted;
    findings.push_back({fatal ? Tone::bad : Tone::warning,
                        "machine: " + std::string(each.check) + ": " + each.found + wanted + ": " +
                            each.consequence,
                        {},
                        each.remedy});
  }
}

Findings findings_of(const RuntimeView& view) {
  Findings findings;
  find_core_faults(view, findings);
  find_slow_turns(view, findings);
  find_pool_faults(view, findings);
  find_client_faults(view, findings);
  find_connection_faults(view, findings);
  find_route_faults(view, findings);
  find_memory_faults(view, findings);
  find_machine_faults(view, findings);
  findings = shortened(std::move(findings));
  Findings sorted;
  for (const Tone tone : {Tone::bad, Tone::warning}) {
    for (Finding& each : findings) {
      if (each.tone == tone) sorted.push_back(std::move(each));
    }
  }
  return sorted;
}

Section findings_section(const Findings& findings) {
  Section section{.key = "findings",
                  .title = "What looks wrong",
                  .columns = {{"finding", "finding"}, {"remedy", "what to do"}, {"page", "page"}},
                  .when_empty = "Nothing looks wrong."};
  for (const Finding& each : findings) {
    section.rows.push_back({Cell(each.text).with(each.tone),
                            each.remedy.empty() ? Cell() : Cell(each.remedy),
                            each.page.empty() ? Cell() : Cell(each.page).linked(each.page)});
  }
  return section;
}

}  // namespace weir::admin
