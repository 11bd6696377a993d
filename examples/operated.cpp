// operated: a service with admin pages, and faults that its pages show. Try:
//   ./dev run operated -- --port 8080           # pages at http://127.0.0.1:8081/weir/overview
//   curl localhost:8080/slow                    # or /leak, /stuck, /pool, /store
//   operated --healthcheck 127.0.0.1:8081       # exits with 0 if the service is ready
//   weir top http://127.0.0.1:8081
#include <memory>
#include <thread>

#include <weir/admin/listener.hpp>
#include <weir/app.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/loop/os/os_platform.hpp>
#include <weir/runtime/pool/blocking_pool.hpp>
#include <weir/task.hpp>
#include <weir/tls.hpp>

using namespace weir;

/// Blocks its core, so that all other tasks of the core wait.
http::Response slow(const http::Request& request) {
  loop::Platform& platform = request.loop()->platform();
  const Instant end = platform.now() + 120ms;
  while (platform.now() < end) continue;
  return http::text("slow\n");
}

/// Keeps tasks that nothing ends.
struct Leak {
  explicit Leak(Scope& scope) : tasks(scope) {}
  Scope& tasks;
};
Task<> forgotten() {
  std::ignore = co_await sleep(24h);
}
http::Response leak(Leak& kept) {
  for (int i = 0; i < 100; ++i) kept.tasks.spawn(forgotten());
  return http::text("leaked 100 tasks\n");
}

/// Waits for an event that never happens.
Task<http::Response> stuck() {
  ManualResetEvent never_set;
  std::ignore = co_await never_set.wait();
  co_return http::text("at last\n");
}

/// Fills a pool of two threads.
Task<http::Response> use_pool(BlockingPool& pool) {
  const auto work = [] { std::this_thread::sleep_for(1s); };
  const auto done = co_await pool.run(work);
  co_return done ? http::text("done\n") : http::Response(http::to_status(done.error()));
}

/// Asks a store that does not listen.
Task<http::Response> ask_store(http::Client& client) {
  const auto answer = co_await client.get("http://127.0.0.1:9/");
  co_return answer ? http::text("stored\n") : http::Response(http::Status::bad_gateway);
}

/// Takes a while to start.
struct Store {
  Task<Result<>> start() { co_return co_await sleep(1s); }
};

int main(int argc, char** argv) {
  const auto options = ServerOptions::from_args(argc, argv);
  const auto port = options.endpoint.port();
  OsPlatform platform;
  BlockingPool images(platform, {.name = "images", .size = {.fixed = 2}, .lane = {}});
  App app;
  app.per_core<Store>();
  app.per_core<Leak>();
  app.per_core([] { return std::make_unique<http::Client>(); });
  http::Router router;
  router.get("/", [] { return http::text("fast\n"); });
  router.get("/slow", slow);
  router.get("/leak", leak);
  router.get("/stuck", stuck);
  router.get("/pool", [&images] { return use_pool(images); });
  router.get("/store", ask_store);
  const auto admin_port = static_cast<std::uint16_t>(port == 0 ? 0 : port + 1);
  AdminListener admin(
      {.endpoint = Endpoint::loopback(admin_port), .title = "operated", .app = &app});
  admin.add_pool("images", images);
  serve_admin(app, admin);
  serve_http(app, router, {.endpoint = options.endpoint, .observer = &admin.request_observer()});
  return app.run(options);
}
