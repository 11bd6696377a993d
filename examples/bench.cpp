// bench: what the benchmarks ask for. GET / answers 128 bytes in all, head included, and GET /190
// as many as it says; POST /ping takes {"sequence": n} and gives it back.
#include <weir/http.hpp>

using namespace weir;

struct Ping {
  int sequence;
};

Ping ping(const Ping& ping) {
  return ping;
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
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}
