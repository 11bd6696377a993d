// The pages of the admin listener: their routes and the data that they are made of.
#include "weir/admin/detail/listener_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "weir/http/message/response.hpp"
#include "weir/net/files.hpp"
#include "weir/runtime/checks/detail/start_checks.hpp"
#include "weir/runtime/detail/group_report.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/task/sleep.hpp"

namespace weir::admin {
namespace {

/// The time between the two reports of the first page, whose difference gives the rates.
constexpr Duration first_look = std::chrono::milliseconds(200);
constexpr std::uint64_t page_bytes = 4096;  // of /proc/self/statm, on x86-64 and most ARM64

/// Returns the memory of this process; nullopt where there is no /proc.
Task<std::optional<ProcessMemory>> read_memory() {
  auto file = co_await files::open("/proc/self/statm");
  if (!file) co_return std::nullopt;
  const auto read = co_await file->read(256);
  if (!read) co_return std::nullopt;
  // All pages, the resident ones, and those of them that belong to files.
  std::array<std::uint64_t, 3> pages{};
  std::string_view text = read->text();
  for (std::uint64_t& each : pages) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), each);
    if (parsed.ec != std::errc()) co_return std::nullopt;
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
  co_return ProcessMemory{page_bytes * pages[1], page_bytes * std::min(pages[1], pages[2])};
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

std::string text_of(const TaskReport& report) {
  return report.to_text();
}

http::Response show_style() {
  http::Response response = http::text(std::string(stylesheet()));
  response.set_header("Content-Type", "text/css; charset=utf-8");
  return response;
}

}  // namespace

Format format_of(const http::Request& request) {
  return choose_format(request.query("format").value_or(std::string()),
                       request.header("Accept").value_or(std::string_view()));
}

LivePages::LivePages(LivePagesOptions options) : options_(std::move(options)) {
  frame_.title = options_.title;
  frame_.refresh = options_.refresh;
}

void LivePages::mount(http::Router& router) {
  add_short(router, "overview", "Overview", overview_page);
  add_short(router, "cores", "Cores", cores_page);
  add(router, "routes", "Routes", routes_page);
  add(router, "connections", "Connections", connections_page);
  add_short(router, "clients", "Clients", clients_page);
  add_short(router, "slow_turns", "Slow turns", slow_turns_page);
  add_short(router, "pools", "Pools", pools_page);
  add_short(router, "memory", "Memory", memory_page);
  add_short(router, "timers", "Timers", timers_page);
  add_tasks(router);
  add_program_pages(router);
  if (options_.has_services) frame_.menu.push_back({"services", "Services"});
  router.get("/weir/admin.css", [] { return show_style(); });
  router.get("/", [] { return http::redirect("/weir/overview"); });
  router.get("/weir", [] { return http::redirect("/weir/overview"); });
}

void LivePages::add_tasks(http::Router& router) {
  frame_.menu.push_back({"tasks", "Tasks"});
  router.get("/weir/tasks",
             [this](const http::Request& request) { return show_tasks(format_of(request)); });
  router.get("/weir/tasks.json", [this] { return show_tasks(Format::json); });
  router.get("/weir/tasks.txt", [this] { return show_tasks(Format::text); });
}

void LivePages::add_program_pages(http::Router& router) {
  if (options_.configuration) {
    add_short(router, "configuration", "Configuration",
              [this](const RuntimeView&) { return configuration_page(options_.configuration()); });
  }
  if (options_.logs == nullptr) return;
  LogService& logs = *options_.logs;
  add_short(router, "log_levels", "Log levels",
            [&logs](const RuntimeView&) { return log_levels_page(logs); });
  router.post("/weir/log_levels",
              [&logs](http::Form<LevelForm> form) { return set_log_level(logs, *form); });
}

void LivePages::add_short(http::Router& router, std::string_view name, std::string title,
                          std::function<Page(const RuntimeView&)> make) {
  add(router, name, std::move(title),
      [make = std::move(make)](const RuntimeView& view) -> Task<Page> {
        Page page = make(view);
        co_return page;
      });
}

void LivePages::add(http::Router& router, std::string_view name, std::string title, MakePage make) {
  frame_.menu.push_back({std::string(name), std::move(title)});
  pages_.push_back(std::move(make));
  const MakePage& page = pages_.back();
  const std::string path = "/weir/" + std::string(name);
  const auto add_chosen = [this, &page](const http::Request& request) {
    return show(page, format_of(request));
  };
  std::ignore = router.add("GET", std::move(http::Pattern::parse(path).value()), add_chosen);
  const auto add_format = [&](std::string_view ending, Format format) {
    auto pattern = http::Pattern::parse(path + std::string(ending));
    std::ignore = router.add("GET", std::move(pattern.value()),
                             [this, &page, format] { return show(page, format); });
  };
  add_format(".json", Format::json);
  add_format(".txt", Format::text);
}

Task<http::Response> LivePages::show(const MakePage& make, Format format) {
  const RuntimeView view = co_await look();
  Page page = co_await make(view);
  co_return co_await respond(std::move(page), format);
}

Task<http::Response> LivePages::show_tasks(Format format) {
  Loop& loop = *(co_await this_context()).loop;
  const TaskReportOptions limits{.entries_max = rows_max, .timeout = CoreSnapshots::wait_max};
  const auto report = co_await report_tasks(limits);
  if (!report) co_return http::to_status(report.error());
  // A thread of the pool makes the text, which takes up to a millisecond.
  const auto text = co_await shared_pool(loop).pool().run(&text_of, borrow(*report));
  if (!text) co_return http::to_status(text.error());
  Page page = co_await tasks_page(*report, *text);
  co_return co_await respond(std::move(page), format);
}

Task<RuntimeView> LivePages::look() {
  Loop& loop = *(co_await this_context()).loop;
  loop::Platform& platform = loop.platform();
  RuntimeView view;
  view.memory = co_await read_memory();
  std::optional<std::uint64_t> resident;
  if (view.memory) resident = view.memory->resident_bytes;
  view.seen = history_.observe(report_on_group(loop), resident, platform.now());
  if (view.seen.recent_age <= Duration::zero()) {
    std::ignore = co_await sleep(first_look);
    view.seen = history_.observe(report_on_group(loop), resident, platform.now());
  }
  co_await weir::detail::NextTurn(loop);
  view.cores = co_await CoreSnapshots::of(loop).collect();
  const auto routes = co_await read_routes(loop);
  const RouteObservation older = history_.observe(routes, platform.now());
  view.routes = co_await compare_routes(loop, *routes, older.recent.get(), older.recent_age);
  for (const auto& [name, pool] : pools_) view.pools.emplace_back(name, pool->report());
  view.bound = options_.memory_bound;
  const auto* const start_checks = checks::StartChecks::find(loop);
  if (start_checks != nullptr) view.machine = start_checks->logged();
  co_return view;
}

Task<http::Response> LivePages::respond(Page page, Format format) const {
  co_await limit_page(page);
  std::string body = co_await render(std::move(page), frame_, format);
  http::Response response =
      format == Format::html ? http::html(std::move(body)) : http::text(std::move(body));
  if (format == Format::json) response.set_header("Content-Type", "application/json");
  response.set_header("Vary", "Accept");
  co_return response;
}

}  // namespace weir::admin
