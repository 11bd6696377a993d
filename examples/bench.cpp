// bench: the server of the benchmarks. GET / answers 128 bytes and GET /190 answers 190, head
// included. POST /ping takes {"sequence": n} and returns it. POST /ping/elsewhere does the same on
// another core than the connection's.
#include <weir/http.hpp>
#include <weir/runtime/on_core.hpp>

using namespace weir;

struct Ping {
  int sequence;
};

Ping ping(Ping ping) {
  return ping;
}

Task<Ping> ping_elsewhere(Ping sent, unsigned cores) {
  const Context here = co_await this_context();
  co_return co_await on_core((here.loop->core() + 1) % cores, ping, sent);
}

http::Response poem() {
  constexpr http::Literal text(
      "Eighty-seven bytes of body, and a head of a hundred and three: one of a hundred ninety.");
  return {http::Status::ok, "text/x-poem", http::Body(text)};
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  routes.get("/", [] { return http::text("Hello Weir\n"); });
  routes.get("/190", poem);
  routes.post("/ping", ping);
  Runtime runtime(options);
  const auto cores = static_cast<unsigned>(runtime.core_count());
  routes.post("/ping/elsewhere", [cores](Ping sent) { return ping_elsewhere(sent, cores); });
  return runtime.run_on_each_core(http::serve, std::cref(routes),
                                  http::ServeOptions{options.endpoint});
}
