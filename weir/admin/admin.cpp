// Admin routes that show the state of a running app.
#include "weir/admin/admin.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/admin/detail/listener_parts.hpp"
#include "weir/admin/detail/services/service_page.hpp"
#include "weir/admin/detail/services/service_svg.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/http/message/response.hpp"
#include "weir/loop/loop.hpp"

namespace weir {
namespace {

/// Samples of each core's event count; a rate is the growth since the oldest sample.
class EventRates {
 public:
  explicit EventRates(const EventBus* events) : events_(events) {}

  /// Returns the rates of all cores; any core may call it.
  std::vector<drawing::EventRate> sample(Instant now) {
    std::vector<drawing::EventRate> rates;
    if (events_ == nullptr) return rates;
    const std::lock_guard lock(mutex_);
    if (samples_.empty() || now - samples_.back().when >= sample_period) add_sample(now);
    const Sample& before = samples_.front();
    const double seconds = std::chrono::duration<double>(now - before.when).count();
    for (std::size_t core = 0; core < events_->core_count(); ++core) {
      const EventCounters& counters = events_->counters(core);
      drawing::EventRate rate;
      rate.core = static_cast<unsigned>(core);
      rate.handled = counters.handled.value();
      rate.rejected = counters.rejected.value();
      rate.failures = counters.failures.value();
      const auto fresh = static_cast<double>(rate.handled - before.handled[core]);
      rate.per_second = seconds > 0 ? fresh / seconds : 0;
      rates.push_back(rate);
    }
    return rates;
  }

 private:
  static constexpr Duration sample_period = std::chrono::seconds(1);
  static constexpr std::size_t samples_max = 5;
  struct Sample {
    Instant when;
    std::vector<std::uint64_t> handled;  // by core
  };

  void add_sample(Instant now) {
    if (samples_.size() == samples_max) samples_.erase(samples_.begin());
    Sample& sample = samples_.emplace_back(Sample{now, {}});
    for (std::size_t core = 0; core < events_->core_count(); ++core) {
      sample.handled.push_back(events_->counters(core).handled.value());
    }
  }

  const EventBus* events_;
  std::mutex mutex_;
  std::vector<Sample> samples_;
};

/// The state that all handlers share.
struct Admin {
  Admin(App& of, const AdminOptions& said) : app(of), options(said), rates(said.events) {}

  App& app;
  AdminOptions options;
  EventRates rates;
};
using AdminPtr = std::shared_ptr<Admin>;

/// Adds the security headers of every response: no foreign content, no caching, no framing.
http::Response with_security_headers(http::Response response) {
  response.add_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "no-referrer");
  response.add_header("Cache-Control", "no-store");
  return response;
}

Task<drawing::ServicePage> load_page(AdminPtr admin) {
  drawing::ServicePage page;
  page.title = admin->options.title;
  page.home = admin->options.home;
  page.refresh = admin->options.refresh;
  page.explanation = co_await admin->app.explain_async();
  page.events = admin->rates.sample((co_await this_context()).loop->platform().now());
  co_return page;
}

Task<http::Response> show_page(AdminPtr admin) {
  const drawing::ServicePage page = co_await load_page(admin);
  co_return with_security_headers(http::html(drawing::to_html(page)));
}

Task<http::Response> show_json(AdminPtr admin) {
  const drawing::ServicePage page = co_await load_page(admin);
  http::Response response = http::text(to_printable_json(drawing::to_json(page)));
  response.set_header("Content-Type", "application/json");
  co_return with_security_headers(std::move(response));
}

Task<http::Response> show_dot(AdminPtr admin) {
  const Explanation explanation = co_await admin->app.explain_async();
  http::Response response = http::text(explanation.to_dot());
  response.set_header("Content-Type", "text/vnd.graphviz; charset=utf-8");
  co_return with_security_headers(std::move(response));
}

Task<http::Response> show_text(AdminPtr admin) {
  const Explanation explanation = co_await admin->app.explain_async();
  co_return with_security_headers(http::text(explanation.to_text()));
}

Task<http::Response> show_chosen(const AdminPtr& admin, const http::Request& request) {
  switch (admin::format_of(request)) {
    case admin::Format::json:
      return show_json(admin);
    case admin::Format::text:
      return show_text(admin);
    case admin::Format::html:
      break;
  }
  return show_page(admin);
}

http::Response show_style() {
  http::Response response = http::text(std::string(drawing::service_stylesheet()));
  response.set_header("Content-Type", "text/css; charset=utf-8");
  return with_security_headers(std::move(response));
}

}  // namespace

void mount_admin(http::Router& router, App& app, const AdminOptions& options) {
  const auto admin = std::make_shared<Admin>(app, options);
  router.get("/weir/services",
             [admin](const http::Request& request) { return show_chosen(admin, request); });
  router.get("/weir/services.json", [admin] { return show_json(admin); });
  router.get("/weir/services.dot", [admin] { return show_dot(admin); });
  router.get("/weir/services.txt", [admin] { return show_text(admin); });
  router.get("/weir/services.css", [] { return show_style(); });
}

}  // namespace weir
