// Measures a no-op call to a thread pool and its return to the loop, one call at a time and 64 at
// the same time. libuv's uv_queue_work and Boost.Asio's thread_pool are the comparison if
// installed. Prints one line of JSON per round: nanoseconds per hop.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"

#if WEIR_BENCH_LIBUV
#include <uv.h>
#endif
#if __has_include(<boost/asio.hpp>)
#include <boost/asio.hpp>
#endif

namespace weir {
namespace {

constexpr int hops = 16'384;
constexpr int at_once = 64;
constexpr std::size_t threads = 4;  // libuv's own default

using Clock = std::chrono::steady_clock;

struct Results {
  double one = 0;
  double many = 0;
};

void nothing() {}

void require(bool holds) {
  if (!holds) std::abort();
}

/// Nanoseconds per hop of `round(in_a_round)`, after a warm-up.
double measure(int in_a_round, const std::function<void(int)>& round) {
  for (int done = 0; done < hops / 8; done += in_a_round) round(in_a_round);
  const auto begin = Clock::now();
  for (int done = 0; done < hops; done += in_a_round) round(in_a_round);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  return took.count() / hops;
}

/// Measures the pools of other libraries. Unused if no such library is installed.
[[maybe_unused]] Results measure(const std::function<void(int)>& round) {
  Results results;
  results.one = measure(1, round);
  results.many = measure(at_once, round);
  return results;
}

// ---- Weir ---------------------------------------------------------------------------------------

Task<> hop(BlockingPool& pool) {
  const auto done = co_await pool.run(&nothing);
  require(done.has_value());
}

Task<> hop_at_once(Scope& scope, BlockingPool& pool, int count) {
  for (int i = 0; i < count; ++i) scope.spawn(hop(pool));
  co_return;
}

Task<double> hop_often(BlockingPool& pool, int in_a_round) {
  Clock::time_point begin;
  for (int done = -hops / 8; done < hops; done += in_a_round) {
    if (done == 0) begin = Clock::now();
    if (in_a_round == 1) {
      co_await hop(pool);
    } else {
      std::ignore = co_await with_scope(hop_at_once, std::ref(pool), in_a_round);
    }
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  co_return took.count() / hops;
}

Results by_weir(BackendChoice backend, std::size_t size) {
  OsPlatform platform;
  const auto loop = Loop::make(platform, {.backend = backend}).value();
  BlockingPoolOptions options;
  options.size.fixed = size;
  BlockingPool pool(platform, options);
  Results results;
  results.one = run(*loop, hop_often(pool, 1));
  results.many = run(*loop, hop_often(pool, at_once));
  return results;
}

// ---- Other libraries ----------------------------------------------------------------------------

#if WEIR_BENCH_LIBUV
Results by_libuv() {
  uv_loop_t loop;
  require(uv_loop_init(&loop) == 0);
  std::vector<uv_work_t> requests(at_once);
  const Results results = measure([&](int count) {
    for (int i = 0; i < count; ++i) {
      uv_queue_work(
          &loop, &requests[static_cast<std::size_t>(i)], [](uv_work_t*) { nothing(); },
          [](uv_work_t*, int) {});
    }
    uv_run(&loop, UV_RUN_DEFAULT);
  });
  require(uv_loop_close(&loop) == 0);
  return results;
}
#endif

#if __has_include(<boost/asio.hpp>)
Results by_asio() {
  boost::asio::thread_pool pool(threads);
  boost::asio::io_context context(1);  // concurrency hint: one thread
  const auto guard = boost::asio::make_work_guard(context);
  const Results results = measure([&](int count) {
    int left = count;
    for (int i = 0; i < count; ++i) {
      boost::asio::post(pool, [&context, &left] {
        nothing();
        boost::asio::post(context, [&left] { --left; });
      });
    }
    while (left != 0) context.run_one();
  });
  pool.join();
  return results;
}
#endif

// ---- All measurements ---------------------------------------------------------------------------

void add(std::string& line, const char* name, const Results& results) {
  char text[128];
  std::snprintf(text, sizeof text, "%s\"%s\": {\"one\": %.0f, \"sixty-four\": %.0f}",
                line.empty() ? "" : ", ", name, results.one, results.many);
  line += text;
}

std::string measure_once() {
  std::string line;
  add(line, "Weir", by_weir(BackendChoice::automatic, 0));
  add(line, "Weir, epoll", by_weir(BackendChoice::epoll, 0));
  add(line, "Weir, four threads", by_weir(BackendChoice::automatic, threads));
#if WEIR_BENCH_LIBUV
  add(line, "libuv, uv_queue_work", by_libuv());
#endif
#if __has_include(<boost/asio.hpp>)
  add(line, "Boost.Asio, thread_pool", by_asio());
#endif
  return line;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    std::printf("{%s}\n", weir::measure_once().c_str());
    std::fflush(stdout);
  }
}
