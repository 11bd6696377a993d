// The pages of the admin listener: their routes and the data that they are made of.
#include "weir/admin/detail/listener_parts.hpp"

#include <charconv>
#include <chrono>

#include "weir/http/message/response.hpp"
#include "weir/net/files.hpp"
#include "weir/runtime/detail/group_report.hpp"
#include "weir/task/sleep.hpp"

namespace weir::admin {
namespace {

/// The time between the two reports of the first page, whose difference gives the rates.
constexpr Duration first_look = std::chrono::milliseconds(200);
constexpr std::uint64_t page_bytes = 4096;  // of /proc/self/statm, on x86-64 and most ARM64

/// Returns the resident memory of this process; nullopt where there is no /proc.
Task<std::optional<std::uint64_t>> resident_bytes() {
  auto file = co_await files::open("/proc/self/statm");
  if (!file) co_return std::nullopt;
  const auto read = co_await file->read(256);
  if (!read) co_return std::nullopt;
  const std::string_view text = read->text();
  const std::size_t blank = text.find(' ');
  if (blank == text.npos) co_return std::nullopt;
  std::uint64_t pages = 0;
  const auto parsed = std::from_chars(text.data() + blank + 1, text.data() + text.size(), pages);
  if (parsed.ec != std::errc()) co_return std::nullopt;
  co_return page_bytes* pages;
}

Page overview_page(const RuntimeView& view) {
  Page page{.name = "overview", .title = "Overview"};
  page.sections.push_back(findings_section(findings_of(view)));
  page.sections.push_back(summary_section(view));
  Section more{.key = "more", .title = "For other programs"};
  more.columns = {{"page", "page"}, {"contents", "contents"}};
  more.rows = {{Cell("metrics").linked("../metrics"), "counters and histograms for Prometheus"},
               {Cell("profile").linked("../profile?format=html&seconds=5"),
                "a CPU profile, by route and coroutine"}};
  page.sections.push_back(std::move(more));
  return page;
}

http::Response show_style() {
  http::Response response = http::text(std::string(stylesheet()));
  response.set_header("Content-Type", "text/css; charset=utf-8");
  return response;
}

}  // namespace

LivePages::LivePages(LivePagesOptions options) : options_(std::move(options)) {
  frame_.title = options_.title;
  frame_.refresh = options_.refresh;
}

void LivePages::mount(http::Router& router) {
  add(router, "overview", "Overview", overview_page);
  add(router, "cores", "Cores", cores_page);
  add(router, "routes", "Routes", routes_page);
  add(router, "connections", "Connections", connections_page);
  add(router, "clients", "Clients", clients_page);
  add(router, "slow_turns", "Slow turns", slow_turns_page);
  add(router, "pools", "Pools", pools_page);
  add(router, "memory", "Memory", memory_page);
  add(router, "timers", "Timers", timers_page);
  add_tasks(router);
  add_program_pages(router);
  if (options_.has_services) frame_.menu.push_back({"services", "Services"});
  router.get("/weir/admin.css", [] { return show_style(); });
  router.get("/", [] { return http::redirect("/weir/overview"); });
  router.get("/weir", [] { return http::redirect("/weir/overview"); });
}

void LivePages::add_tasks(http::Router& router) {
  frame_.menu.push_back({"tasks", "Tasks"});
  router.get("/weir/tasks", [this] { return show_tasks(Format::html); });
  router.get("/weir/tasks.json", [this] { return show_tasks(Format::json); });
  router.get("/weir/tasks.txt", [this] { return show_tasks(Format::text); });
}

void LivePages::add_program_pages(http::Router& router) {
  if (options_.configuration) {
    add(router, "configuration", "Configuration",
        [this](const RuntimeView&) { return configuration_page(options_.configuration()); });
  }
  if (options_.logs == nullptr) return;
  LogService& logs = *options_.logs;
  add(router, "log_levels", "Log levels",
      [&logs](const RuntimeView&) { return log_levels_page(logs); });
  router.post("/weir/log_levels",
              [&logs](http::Form<LevelForm> form) { return set_log_level(logs, *form); });
}

void LivePages::add(http::Router& router, std::string_view name, std::string title, MakePage make) {
  frame_.menu.push_back({std::string(name), std::move(title)});
  pages_.push_back(std::move(make));
  const MakePage& page = pages_.back();
  const std::string path = "/weir/" + std::string(name);
  const auto add_format = [&](std::string_view ending, Format format) {
    auto pattern = http::Pattern::parse(path + std::string(ending));
    std::ignore = router.add("GET", std::move(pattern.value()),
                             [this, &page, format] { return show(page, format); });
  };
  add_format("", Format::html);
  add_format(".json", Format::json);
  add_format(".txt", Format::text);
}

Task<http::Response> LivePages::show(const MakePage& make, Format format) {
  const RuntimeView view = co_await look();
  co_return render(make(view), format);
}

Task<http::Response> LivePages::show_tasks(Format format) {
  const TaskReportOptions limits{.entries_max = 500, .timeout = CoreSnapshots::wait_max};
  const auto report = co_await report_tasks(limits);
  if (!report) co_return http::to_status(report.error());
  co_return render(tasks_page(*report), format);
}

Task<RuntimeView> LivePages::look() {
  Loop& loop = *(co_await this_context()).loop;
  loop::Platform& platform = loop.platform();
  RuntimeView view;
  const auto resident = co_await resident_bytes();
  view.seen = history_.observe(report_on_group(loop), resident, platform.now());
  if (view.seen.recent_age <= Duration::zero()) {
    std::ignore = co_await sleep(first_look);
    view.seen = history_.observe(report_on_group(loop), resident, platform.now());
  }
  view.cores = co_await CoreSnapshots::of(loop).collect();
  std::vector<RouteCounts> routes;
  for (const CoreAnswer& each : view.cores) add_routes(routes, each.snapshot.routes);
  view.routes = history_.observe(std::move(routes), platform.now());
  for (const auto& [name, pool] : pools_) view.pools.emplace_back(name, pool->report());
  view.bound = options_.memory_bound;
  co_return view;
}

http::Response LivePages::render(Page page, Format format) const {
  limit_page(page);
  switch (format) {
    case Format::html:
      return http::html(to_html(page, frame_));
    case Format::json: {
      http::Response response = http::text(to_json(page, frame_));
      response.set_header("Content-Type", "application/json");
      return response;
    }
    case Format::text:
      break;
  }
  return http::text(to_text(page, frame_));
}

}  // namespace weir::admin
