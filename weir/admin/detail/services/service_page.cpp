// Writes the live page of an app's services as HTML and JSON.
#include "weir/admin/detail/services/service_page.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <string_view>

#include "weir/admin/detail/services/service_groups.hpp"
#include "weir/admin/detail/services/service_svg.hpp"
#include "weir/base/text/detail/html_escape.hpp"
#include "weir/json.hpp"

namespace weir::drawing {
namespace {

constexpr std::array<ServiceState, 5> states{ServiceState::running, ServiceState::starting,
                                             ServiceState::waiting, ServiceState::stopping,
                                             ServiceState::failed};

/// Returns "3.2 s", "4 min", "7 h" or "12 days".
std::string age(Duration length) {
  const auto count = [](auto whole, std::string_view unit) {
    return std::to_string(whole.count()) + std::string(unit);
  };
  if (length >= std::chrono::days(2)) return count(floor<std::chrono::days>(length), " days");
  if (length >= std::chrono::hours(2)) return count(floor<std::chrono::hours>(length), " h");
  if (length >= std::chrono::minutes(2)) return count(floor<std::chrono::minutes>(length), " min");
  const auto tenths = floor<std::chrono::milliseconds>(length).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string where(const ServiceReport& service) {
  if (service.placement == Placement::shared) return "shared";
  return "core " + std::to_string(service.core);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : ", ") + escape_html(each);
  return text;
}

std::string state_badge(ServiceState state, std::string_view text) {
  return "<span class=\"state " + std::string(to_string(state)) + "\">" + std::string(text) +
         "</span>";
}

/// Returns the number of instances in each state, as badges.
std::string summary(const Explanation& explanation) {
  std::string text;
  for (const ServiceState state : states) {
    std::size_t count = 0;
    for (const ServiceReport& each : explanation.services) count += each.state == state;
    if (count == 0) continue;
    text += state_badge(state, std::to_string(count) + " " + std::string(to_string(state))) + " ";
  }
  return text.empty() ? "There are no services." : text;
}

std::string row(const Explanation& explanation, const ServiceReport& service) {
  std::string takes;
  const auto add = [&](const std::vector<std::size_t>& of, std::string_view behind) {
    for (const std::size_t each : of) {
      takes += (takes.empty() ? "" : ", ") +
               escape_html(short_name(explanation.services[each].name)) + std::string(behind);
    }
  };
  add(service.uses, "");
  add(service.may_use, " (optional)");
  std::string why = escape_html(service.failure);
  if (!service.waits_for.empty()) why += "for " + joined(service.waits_for);
  return "<tr><td>" + escape_html(service.name) + "</td><td class=\"fixed\">" + where(service) +
         "</td><td class=\"fixed\">" + state_badge(service.state, to_string(service.state)) +
         "</td><td class=\"count\">" + age(service.state_duration) + "</td><td>" + why +
         "</td><td>" + takes + "</td></tr>\n";
}

std::string rate(double per_second) {
  const long tenths = std::lround(per_second * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string events_table(const std::vector<EventRate>& events) {
  std::string html =
      "<h2>Events</h2>\n<table><tr><th>core</th><th>per second</th><th>handled</th>"
      "<th>rejected</th><th>failures</th></tr>\n";
  for (const EventRate& each : events) {
    html += "<tr><td class=\"count\">" + std::to_string(each.core) + "</td><td class=\"count\">" +
            rate(each.per_second) + "</td><td class=\"count\">" + std::to_string(each.handled) +
            "</td><td class=\"count\">" + std::to_string(each.rejected) +
            "</td><td class=\"count\">" + std::to_string(each.failures) + "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string home_link(const std::string& home) {
  if (home.empty()) return {};
  return "<p><a href=\"" + escape_html(home) + "\">All pages</a></p>\n";
}

struct EventsJson {
  std::vector<EventRate> events;
};

}  // namespace

std::string to_html(const ServicePage& page) {
  const std::string title = escape_html(page.title);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n";
  if (page.refresh > Duration::zero()) {
    const auto seconds = ceil<std::chrono::seconds>(page.refresh).count();
    html += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(seconds) + "\">\n";
  }
  html += "<title>" + title + ": services</title>\n" +
          "<link rel=\"stylesheet\" href=\"services.css\">\n</head>\n<body>\n<h1>" + title +
          "</h1>\n" + home_link(page.home) + "<p>" + summary(page.explanation) +
          "</p>\n<div class=\"picture\">\n" + draw_services(page.explanation) + "</div>\n";
  if (!page.events.empty()) html += events_table(page.events);
  html +=
      "<h2>Services</h2>\n<table><tr><th>service</th><th>where</th><th>state</th><th>since</th>"
      "<th>reason</th><th>takes</th></tr>\n";
  for (const ServiceReport& each : page.explanation.services) html += row(page.explanation, each);
  return html +
         "</table>\n<p>Also as <a href=\"services.json\">JSON</a>, <a "
         "href=\"services.dot\">DOT</a>, <a "
         "href=\"services.txt\">text</a>.</p>\n</body>\n</html>\n";
}

std::string to_json(const ServicePage& page) {
  std::string services = page.explanation.to_json();
  const std::string events = json::write(EventsJson{page.events});
  services.pop_back();
  return services + "," + events.substr(1);
}

}  // namespace weir::drawing
