// pool_lab: a request starts ten operations in a pool of threads and is answered immediately. Try:
//   pool_lab --pool 4 --port 8080                      (or another number of threads, or auto)
//   curl -X POST localhost:8080/test/mix/20000; sleep 1; curl localhost:8080/report/0
#include "examples/pool_lab.hpp"

#include <weir/http.hpp>
#include <weir/loop/os/os_platform.hpp>
#include <weir/runtime/on_core.hpp>
#include <weir/runtime/pool/blocking_pool.hpp>
#include <weir/tls.hpp>

using namespace weir;

struct Lab {
  BlockingPool pool;
  std::vector<CompletedOperation> ended{};  // owned by core 0
};

Task<> operate(Lab& lab, Loop& loop, bool computes, int iterations) {
  const Instant arrived = loop.now();
  if (!co_await lab.pool.run(work, computes, iterations)) co_return;
  const Duration took = loop.platform().now() - arrived;
  const CompletedOperation ended{arrived.time_since_epoch().count(), took.count()};
  const auto add_record = [&] { record(lab.ended, ended); };
  co_await on_core(0, add_record);
}

Task<Report> report(Lab& lab, std::size_t from) {
  const auto copy_ended = [&] { return completed_from(lab.ended, from); };
  auto ended = co_await on_core(0, copy_ended);
  const PoolReport pool = lab.pool.report();
  const std::string_view reason = describe(pool.last_change.reason);
  const std::uint64_t refused = pool.lanes.front().rejected;
  co_return Report{pool.size, pool.running, pool.queued, reason, refused, std::move(ended)};
}

Task<Result<>> serve(Scope& core, Lab& lab, http::ServeOptions serving) {
  http::Router routes;
  routes.get("/", [] { return http::text("cheap\n"); });
  routes.get("/report/{from}", [&lab](std::size_t from) { return report(lab, from); });
  routes.post("/test/{kind:cpu|sleep|mix}/{iterations}", [&](std::string_view kind, int count) {
    if (count < 1 || count > 10'000'000) return http::Status::bad_request;
    for (int i = 0; i < 10; ++i) {
      const bool computes = kind == "cpu" || (kind == "mix" && i % 2 == 0);
      core.spawn(operate(lab, core.loop(), computes, count));
    }
    return http::Status::accepted;
  });
  const auto on_scope = [&](Scope& peers) { return http::serve(peers, routes, serving); };
  co_return co_await with_scope(OnFailure::isolate, on_scope);
}

int main(int argc, char** argv) {
  BlockingPoolOptions pool;
  pool.size.fixed = take_pool_size(argc, argv);
  const auto options = http::ProgramOptions::from_args(argc, argv);
  const http::ServeOptions serving = options.serve_options();
  OsPlatform platform;
  Lab lab{BlockingPool(platform, pool)};
  return Runtime(platform, options).run_on_each_core(serve, std::ref(lab), serving);
}
