// The live page of an app's services.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/app/lifecycle/app_status.hpp"
#include "weir/base/time.hpp"

namespace weir::drawing {

/// The events of one core, in all and at present.
struct EventRate {
  unsigned core = 0;
  std::uint64_t handled = 0;
  double per_second = 0;
  std::uint64_t refused = 0;
  std::uint64_t failures = 0;
};

struct ServicePage {
  std::string title;  ///< of the page: which app this is
  Explanation explanation;
  std::vector<EventRate> events;  ///< none: there is no part on them
  Duration refresh{};             ///< how often it reloads itself; zero: never
};

/// A whole HTML page, with the picture in it; its style sheet is `services.css` beside it. There is
/// no script in it, and all texts of the app are escaped.
std::string to_html(const ServicePage& page);

/// {"services": [...as Explanation::to_json()], "events": [{"core": ..., "handled": ...,
/// "per_second": ..., "refused": ..., "failures": ...}]}
std::string to_json(const ServicePage& page);

}  // namespace weir::drawing
