// A service of a project that embeds Weir; tests/embed_test.py builds it. serve() may lie in a
// shared library.
#include <weir/base/version.hpp>
#include <weir/http.hpp>

using namespace weir;

int serve(int argc, char** argv) {
  http::Router router;
  router.get("/version", [] { return http::text(std::string(version())); });
  return http::run(router, argc, argv);
}
