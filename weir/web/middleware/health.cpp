#include "weir/web/middleware/health.hpp"

#include <optional>

#include "weir/http/message/json.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

struct HealthDocument {
  std::string_view status;
  std::optional<std::vector<std::string_view>> failed;
};

Response document(Status status, const HealthDocument& content) {
  Response response = json(content, status);
  response.set_header("Cache-Control", "no-store");
  return response;
}

}  // namespace

void Health::add_check(std::string name, Check check) {
  checks_.emplace_back(std::move(name), std::move(check));
}

Response Health::live() const {
  return document(Status::ok, {.status = "ok", .failed = std::nullopt});
}

Response Health::ready(const Request& request) const {
  std::vector<std::string_view> failed;
  if (!is_ready()) failed.emplace_back("not ready");
  if (request.loop() != nullptr && request.loop()->draining()) failed.emplace_back("draining");
  for (const auto& [name, check] : checks_) {
    if (!check()) failed.emplace_back(name);
  }
  if (failed.empty()) return live();
  return document(Status::service_unavailable,
                  {.status = "unavailable", .failed = std::move(failed)});
}

}  // namespace weir::http
