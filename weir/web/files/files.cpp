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

}  // namespace

Router files(std::string root, FilesOptions options) {
  for (const CacheRule& each : options.cache_control) check("Cache-Control", each.cache_control);
  for (const ExtensionType& each : options.media_types) check("Content-Type", each.media_type);
  auto site = std::make_shared<const FileSite>(std::move(root), std::move(options));
  Router router;
  router.get("/{path...}",
             [site](Request& request, Wildcard path) { return site->answer(request, path.raw()); });
  // The path of a mounted router without a slash at its end.
  router.get("/", [site](Request& request) -> Task<Response> {
    if (request.path_text().ends_with('/')) return site->answer(request, "");
    return detail::ready_task(redirect_to_directory(request));
  });
  return router;
}

}  // namespace weir::http
