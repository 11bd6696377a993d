// site: serves a folder of web pages below /, and a page whose answer has a version below /api.
// Try: site FOLDER [OPTIONS], and then: curl -r 0-99 localhost:8080/index.html
#include <weir/http.hpp>
#include <weir/tls.hpp>
#include <weir/web/files/files.hpp>
#include <weir/web/files/preconditions.hpp>

using namespace weir;

http::Router pages(const std::string& folder) {
  http::FilesOptions options;
  options.precompressed = true;
  options.cache_control = {{"assets/**", "public, max-age=31536000, immutable"},
                           {"**", "no-cache"}};
  options.media_types = {{"gpx", "application/gpx+xml"}};
  return http::files(folder, options);
}

// A client that has this version gets 304, one that expects another gets 412.
http::Response settings(const http::Request& request) {
  const http::Validators current{.etag = "\"settings-7\""};
  if (auto answer = http::answer_preconditions(request, current)) return std::move(*answer);
  auto response = http::text("dark\n");
  http::set_validators(response, current);
  return response;
}

int main(int argc, char** argv) {
  const int named = argc > 1 && argv[1][0] != '-' ? 1 : 0;
  const std::string folder = named == 1 ? std::exchange(argv[1], argv[0]) : ".";
  auto options = http::ProgramOptions::from_args(argc - named, argv + named);
  http::Router router;
  router.get("/api/settings", settings);
  router.mount("", pages(folder));
  return Runtime(options).run_on_each_core(http::serve, std::cref(router), options.serve_options());
}
