#include "weir/web/middleware/health.hpp"

#include <algorithm>
#include <optional>

#include "weir/base/text/detail/printable.hpp"
#include "weir/http/message/response.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/write.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

struct PartDocument {
  std::string_view name;
  bool ready;
  std::optional<std::string_view> reason;
};

struct HealthDocument {
  std::string_view status;
  std::optional<std::vector<std::string_view>> failed;
  std::optional<std::vector<PartDocument>> parts;
};

Response document(Status status, const HealthDocument& content) {
  // A reason may have the text of a peer.
  Response response(status, json_type, Body(to_printable_json(json::write(content))));
  response.set_header("Cache-Control", "no-store");
  return response;
}

bool is_verbose(const Request& request) {
  const std::string_view query = request.query_text();
  return query == "verbose" || query.starts_with("verbose&") || query.starts_with("verbose=") ||
         query.contains("&verbose");
}

/// Returns 200 if `ok`, else 503 with the parts that are not ready; `word` is the status then.
Response answer(const std::vector<HealthPart>& parts, bool ok, std::string_view word,
                bool verbose) {
  HealthDocument content{.status = "ok", .failed = std::nullopt, .parts = std::nullopt};
  if (!ok) {
    content.status = word;
    content.failed.emplace();
    for (const HealthPart& each : parts) {
      if (!each.ready) content.failed->emplace_back(each.name);
    }
  }
  if (verbose) {
    content.parts.emplace();
    for (const HealthPart& each : parts) {
      std::optional<std::string_view> reason;
      if (!each.reason.empty()) reason = each.reason;
      content.parts->push_back({each.name, each.ready, reason});
    }
  }
  return document(ok ? Status::ok : Status::service_unavailable, content);
}

bool all_ready(const std::vector<HealthPart>& parts) {
  return std::ranges::all_of(parts, &HealthPart::ready);
}

}  // namespace

void Health::add_check(std::string name, Check check) {
  checks_.emplace_back(std::move(name), std::move(check));
}

void Health::set_parts(Parts parts) {
  parts_ = std::move(parts);
  started_.store(false, std::memory_order_relaxed);
}

Response Health::live() const {
  return document(Status::ok, {.status = "ok", .failed = std::nullopt, .parts = std::nullopt});
}

/// Returns the state of the program itself, unless it is ready, and those of all checks and parts.
Task<std::vector<HealthPart>> Health::states(const Request& request) const {
  std::vector<HealthPart> states;
  if (!is_ready()) states.push_back({"not ready", false, "the program has not called set_ready()"});
  const bool draining = request.loop() != nullptr && request.loop()->draining();
  if (draining) states.push_back({"draining", false, "the server drains"});
  for (const auto& [name, check] : checks_) {
    if (draining) break;  // a check may use what has ended
    const Result<> result = check();
    states.push_back({name, result.has_value(), result ? "" : result.error().message()});
  }
  if (parts_ != nullptr) {
    std::vector<HealthPart> parts = co_await parts_();
    for (HealthPart& each : parts) states.push_back(std::move(each));
  }
  if (all_ready(states)) started_.store(true, std::memory_order_relaxed);
  co_return states;
}

Task<Response> Health::ready(const Request& request) const {
  const std::vector<HealthPart> parts = co_await states(request);
  co_return answer(parts, all_ready(parts), "unavailable", is_verbose(request));
}

Task<Response> Health::started(const Request& request) const {
  const std::vector<HealthPart> parts = co_await states(request);
  // A service that has started stays started, whatever fails later.
  const bool started = started_.load(std::memory_order_relaxed);
  co_return answer(parts, started, "starting", is_verbose(request));
}

}  // namespace weir::http
