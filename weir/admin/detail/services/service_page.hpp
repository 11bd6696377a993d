// The live page of an app's services.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/app/lifecycle/app_status.hpp"
#include "weir/base/time.hpp"

namespace weir::drawing {

/// The event counters of one core since the start, and its present rate.
struct EventRate {
  unsigned core = 0;
  std::uint64_t handled = 0;
  double per_second = 0;
  std::uint64_t rejected = 0;
  std::uint64_t failures = 0;
};

struct ServicePage {
  std::string title;  ///< title of the page, such as the app's name
  Explanation explanation;
  std::vector<EventRate> events;  ///< empty if the page has no section on events
  Duration refresh{};             ///< reload interval of the page; zero for no reload
  std::string home = {};          ///< path of the link "All pages"; empty: no link
};

/// Returns a complete HTML page with the picture. Its style sheet is `services.css` in the same
/// directory. The page has no script, and all texts of the app are escaped.
std::string to_html(const ServicePage& page);

/// Returns {"services": [...as Explanation::to_json()], "events": [{"core": ..., "handled": ...,
/// "per_second": ..., "rejected": ..., "failures": ...}]}.
std::string to_json(const ServicePage& page);

}  // namespace weir::drawing
