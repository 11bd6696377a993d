// The resources of the simulated HTTP service.
#include "tools/simulate/http_service.hpp"

#include <string>

#include "weir/http/server/serve.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using http::Response;

Response number(int id) {
  return http::text("n " + std::to_string(id) + "\n");
}

Task<Response> slow(int id, int milliseconds) {
  const auto slept = co_await sleep(std::chrono::milliseconds(milliseconds));
  if (!slept) co_return Response(http::Status::service_unavailable);
  co_return http::text("slow " + std::to_string(id) + "\n");
}

std::string pool_text(int id) {
  return "pool " + std::to_string(id) + "\n";
}

Task<Response> in_pool(int id) {
  Loop& loop = *(co_await this_context()).loop;
  auto text = co_await shared_pool(loop).pool().run(pool_text, id);
  if (!text) co_return Response(http::to_status(text.error()));
  co_return http::text(std::move(*text));
}

Task<Result<>> write_lines(http::BodySink& body, int id, int count) {
  const std::string line = std::to_string(id) + "\n";
  for (int number = 0; number < count; ++number) {
    if (auto written = co_await body.write(line); !written) co_return written;
  }
  co_return {};
}

Response lines(int id, int count) {
  return http::stream("text/plain", write_lines, id, count);
}

Task<Response> echo(http::Request& request, int id) {
  std::size_t size = 0;
  unsigned sum = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return Response(http::to_status(piece.error()));
    if (piece->empty()) break;
    size += piece->size();
    for (const std::byte each : *piece) sum += std::to_integer<unsigned>(each);
  }
  co_return http::text("echo " + std::to_string(id) + " " + std::to_string(size) + " " +
                       std::to_string(sum) + "\n");
}

}  // namespace

void add_routes(http::Router& routes) {
  routes.get("/n/{id}", number);
  routes.get("/slow/{id}/{milliseconds}", slow);
  routes.get("/pool/{id}", in_pool);
  routes.get("/lines/{id}/{count}", lines);
  routes.post("/echo/{id}", echo);
}

int serve_http(loop::Platform& host, const HttpServiceOptions& options) {
  http::Router routes;
  add_routes(routes);
  if (options.requests != nullptr) options.requests->see(routes);
  Runtime runtime(host, options.runtime);
  const RuntimeMonitor::Attachment watching(options.watch, runtime);
  return runtime.run_on_each_core(http::serve, std::cref(routes),
                                  http::ServeOptions{options.endpoint, options.limits});
}

}  // namespace weir::simulate
