// Tests a service without a network, with Weir as a package of Conan.
#include <weir/base/version.hpp>
#include <weir/http.hpp>
#include <weir/http_testing.hpp>

#include <cstdio>
#include <string>

using namespace weir;

int main() {
  http::Router router;
  router.get("/version", [] { return http::text(std::string(version())); });
  http::TestClient client(std::move(router));
  const auto response = client.get("/version");
  std::printf("weir %s\n", std::string(response.body()).c_str());
  return response.body() == version() ? 0 : 1;
}
