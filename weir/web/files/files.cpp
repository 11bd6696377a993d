#include "weir/web/files/files.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weir/web/files/detail/file_site.hpp"

namespace weir::http {

namespace {

void check(std::string_view name, const std::string& value) {
  if (value.empty() || !is_valid_header(name, value)) {
    throw std::invalid_argument("http::files: not a " + std::string(name) + ": '" + value + "'");
  }
}

/// Answers the paths below the folder.
struct PathHandler {
  std::shared_ptr<const FileSite> site;

  Task<Response> operator()(Request& request, Wildcard path) const {
    return site->answer(request, path.raw());
  }
  CoreDemands demands(Loop&) const noexcept { return site->demands(); }
};

/// Answers the path of the folder, which has no slash at its end if the router is mounted.
struct RootHandler {
  std::shared_ptr<const FileSite> site;

  Task<Response> operator()(Request& request) const {
    if (request.path_text().ends_with('/')) return site->answer(request, "");
    return detail::ready_task(redirect_to_directory(request));
  }
  CoreDemands demands(Loop&) const noexcept { return site->demands(); }
};

}  // namespace

Router files(std::string root, FilesOptions options) {
  for (const CacheRule& each : options.cache_control) check("Cache-Control", each.cache_control);
  for (const ExtensionType& each : options.media_types) check("Content-Type", each.media_type);
  auto site = std::make_shared<const FileSite>(std::move(root), std::move(options));
  Router router;
  router.get("/{path...}", PathHandler{site});
  router.get("/", RootHandler{site});
  return router;
}

}  // namespace weir::http
