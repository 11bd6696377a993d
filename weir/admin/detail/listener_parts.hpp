// The parts of the admin listener: checks of requests, health of an app, and live pages.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/detail/pages/history.hpp"
#include "weir/admin/detail/pages/page.hpp"
#include "weir/admin/detail/pages/runtime_pages.hpp"
#include "weir/admin/listener.hpp"
#include "weir/app/app.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/os/address.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/task.hpp"
#include "weir/web/auth/basic_auth.hpp"
#include "weir/web/auth/bearer_auth.hpp"
#include "weir/web/middleware/health.hpp"
#include "weir/web/protection/allowed_hosts.hpp"

namespace weir::admin {

/// Returns true if only this machine reaches the endpoint: a loopback address or a Unix socket.
bool is_local(const Endpoint& endpoint) noexcept;

/// Middleware that checks the Host of a request and its token. A Unix socket accepts all hosts,
/// because no page of a browser reaches it.
/// Threads: any.
class AdminGuard {
 public:
  explicit AdminGuard(const AdminListenerOptions& options);

  std::optional<http::Response> before(http::Request& request) const;

 private:
  bool any_host_;
  bool is_remote_and_plain_;  // browsers send no Sec-Fetch-Site
  http::AllowedHosts hosts_;
  std::optional<http::BasicAuth> basic_;
  std::optional<http::BearerAuth> bearer_;
};

/// Middleware that adds the security headers of all responses: no foreign content, no scripts, no
/// caching, no framing, no use in pages of other origins.
/// Threads: any.
class SecurityHeaders {
 public:
  void after(http::Request& request, http::Response& response) const;
};

/// Returns one part for each service. The instances of a per-core service are one part. A service
/// that waits until another requests it is ready, and so are the `optional` ones in any state. An
/// empty explanation gives one part that is not ready.
std::vector<http::HealthPart> parts_of(const Explanation& explanation,
                                       std::span<const std::string> optional);

/// Adds the services of `app` to `health`.
/// Lifetime: `app` outlives the servers of the health.
void add_services(http::Health& health, const App& app, std::vector<std::string> optional);

/// Returns the format of the answer to a request; see choose_format().
Format format_of(const http::Request& request);

/// Bytes of a rendered page, apart from its menu.
inline constexpr std::size_t page_bytes_max = 512 * 1024;

/// Returns the bytes that a handler of a page holds at most: the snapshots of the cores, the page
/// and its rendering.
constexpr std::size_t page_work_bytes(unsigned cores) noexcept {
  return 8 * page_bytes_max + cores * page_bytes_max;
}

/// Removes rows from a page that would have more than `bytes_max` bytes in any format, and cuts
/// long preformatted texts. The rows count as left out. It works in small steps.
/// Lifetime: the page outlives it.
class PageLimiter {
 public:
  explicit PageLimiter(Page& page, std::size_t bytes_max = page_bytes_max);
  ~PageLimiter();
  /// Looks at one row, or at one section. Returns false at the end of the page.
  bool step();

 private:
  class RowsSize;
  void begin_section(const Section& section);
  void end_section(Section& section);

  Page& page_;
  std::size_t left_;
  std::size_t section_ = 0;
  std::unique_ptr<RowsSize> rows_;  // of the present section
  std::size_t row_ = 0;
  std::size_t used_ = 0;
};

/// Limits a page, in several turns of the loop if it is long.
/// Errors: throws std::bad_alloc.
/// Cancel: not affected.
/// Lifetime: the page outlives the task.
Task<> limit_page(Page& page);

struct LivePagesOptions {
  std::string title;
  Duration refresh{};
  bool has_services = false;  ///< true: the menu has the page of services
  std::optional<http::MemoryBound> memory_bound;
  LogService* logs = nullptr;  ///< nullptr: no page of log levels
  std::function<std::vector<config::ShownValue>()> configuration;  ///< empty: no page
};

/// Makes a page in three formats for each request.
/// Threads: mount() and add_pool() before the router is served; handlers on any core.
/// Lifetime: outlives the servers of its router.
class LivePages {
 public:
  explicit LivePages(LivePagesOptions options);

  /// Adds the routes of all pages, and those that lead to the first one.
  void mount(http::Router& router);
  void add_pool(std::string name, const BlockingPool& pool) {
    pools_.emplace_back(std::move(name), &pool);
  }

 private:
  using MakePage = std::function<Task<Page>(const RuntimeView& view)>;

  void add_tasks(http::Router& router);
  void add_program_pages(http::Router& router);
  void add(http::Router& router, std::string_view name, std::string title, MakePage make);
  /// Adds a page that is always short.
  void add_short(http::Router& router, std::string_view name, std::string title,
                 std::function<Page(const RuntimeView& view)> make);
  Task<http::Response> show(const MakePage& make, Format format);
  Task<http::Response> show_tasks(Format format);
  Task<RuntimeView> look();
  Task<http::Response> respond(Page page, Format format) const;

  LivePagesOptions options_;
  Frame frame_;
  std::deque<MakePage> pages_;  // a deque, because handlers refer to its elements
  History history_;
  std::vector<std::pair<std::string, const BlockingPool*>> pools_;
};

}  // namespace weir::admin
