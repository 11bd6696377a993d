// What it costs to hand a no-op to a pool of threads and to be back on the loop: one at a time, and
// sixty-four at once. Beside libuv's uv_queue_work and Boost.Asio's thread_pool, where there are.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "weir/cores/blocking_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os_host.hpp"
#include "weir/task/run.hpp"
#include "weir/task/scope.hpp"

#if WEIR_BENCH_LIBUV
#include <uv.h>
#endif
#if __has_include(<boost/asio.hpp>)
#include <boost/asio.hpp>
#endif

namespace weir {
namespace {

constexpr int at_once = 64;
constexpr std::size_t threads = 4;  // libuv's own default

void nothing() {}

Task<> hop(BlockingPool& pool) {
  benchmark::DoNotOptimize(co_await pool.run(&nothing));
}

void weir_hop(benchmark::State& state, BackendChoice backend, std::size_t size, int hops) {
  OsHost host;
  const auto loop = Loop::make(host, {.backend = backend}).value();
  BlockingPoolOptions options;
  options.size.fixed = size;
  BlockingPool pool(host, options);
  const auto round = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < hops; ++i) scope.spawn(hop(pool));
    co_return;
  };
  const auto body = [&]() -> Task<> {
    for (auto _ : state) benchmark::DoNotOptimize(co_await with_scope(round));
  };
  run(*loop, body());
  state.SetItemsProcessed(state.iterations() * hops);
}
BENCHMARK_CAPTURE(weir_hop, epoll_automatic, BackendChoice::epoll, 0, 1)->UseRealTime();
BENCHMARK_CAPTURE(weir_hop, epoll_fixed, BackendChoice::epoll, threads, 1)->UseRealTime();
BENCHMARK_CAPTURE(weir_hop, best_fixed, BackendChoice::automatic, threads, 1)->UseRealTime();
BENCHMARK_CAPTURE(weir_hop, epoll_automatic_64, BackendChoice::epoll, 0, at_once)->UseRealTime();
BENCHMARK_CAPTURE(weir_hop, epoll_fixed_64, BackendChoice::epoll, threads, at_once)->UseRealTime();
BENCHMARK_CAPTURE(weir_hop, best_fixed_64, BackendChoice::automatic, threads, at_once)
    ->UseRealTime();

#if WEIR_BENCH_LIBUV
void libuv_hop(benchmark::State& state, int hops) {
  uv_loop_t loop;
  uv_loop_init(&loop);
  std::vector<uv_work_t> requests(static_cast<std::size_t>(hops));
  for (auto _ : state) {
    for (uv_work_t& request : requests) {
      uv_queue_work(&loop, &request, [](uv_work_t*) { nothing(); }, [](uv_work_t*, int) {});
    }
    uv_run(&loop, UV_RUN_DEFAULT);
  }
  uv_loop_close(&loop);
  state.SetItemsProcessed(state.iterations() * hops);
}
BENCHMARK_CAPTURE(libuv_hop, one, 1)->UseRealTime();
BENCHMARK_CAPTURE(libuv_hop, many, at_once)->UseRealTime();
#endif

#if __has_include(<boost/asio.hpp>)
void asio_hop(benchmark::State& state, int hops) {
  boost::asio::thread_pool pool(threads);
  boost::asio::io_context context;
  const auto guard = boost::asio::make_work_guard(context);
  for (auto _ : state) {
    int left = hops;
    for (int i = 0; i < hops; ++i) {
      boost::asio::post(pool, [&context, &left] {
        nothing();
        boost::asio::post(context, [&left] { --left; });
      });
    }
    while (left != 0) context.run_one();
  }
  pool.join();
  state.SetItemsProcessed(state.iterations() * hops);
}
BENCHMARK_CAPTURE(asio_hop, one, 1)->UseRealTime();
BENCHMARK_CAPTURE(asio_hop, many, at_once)->UseRealTime();
#endif

}  // namespace
}  // namespace weir
