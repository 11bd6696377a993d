// Runs Weir's HTTP server, which reports how it understood each request. The header X-Understood
// of a response is a JSON object. ./dev differential compares it with the reports of other
// servers.
#include <string>
#include <string_view>

#include "weir/http.hpp"
#include "weir/json/write.hpp"

namespace {

using namespace weir;

constexpr std::size_t shown_bytes_max = 256;

struct Understood {
  std::string method;
  std::string target;
  std::size_t body_bytes;
  std::string body;
};

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    (text += digits[byte >> 4U]) += digits[byte & 15U];
  }
  return text;
}

Task<http::Response> report(http::Request& request, std::string_view) {
  Understood understood;
  understood.method = request.head().method_text();
  understood.target = request.head().target();
  const auto body = co_await request.body_view();
  if (!body) co_return http::Response(http::to_status(body.error()));
  understood.body_bytes = body->size();
  understood.body = hex(body->substr(0, shown_bytes_max));
  http::Response response(http::Status::ok);
  response.set_header("X-Understood", json::write(understood));
  co_return response;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  for (const char* const method : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    routes.add(method, "/{rest...}", report);
  }
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes),
                                           http::ServeOptions{options.endpoint});
}
