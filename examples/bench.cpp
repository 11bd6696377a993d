// bench: the server of the benchmarks. GET / answers 128 bytes and GET /190 answers 190, head
// included. GET /16k and /1m answer 16 KiB and 1 MiB. POST /ping takes {"sequence": n} and returns
// it. POST /ping/elsewhere does the same on another core than the connection's. GET /100m streams
// 100 MiB, and POST /upload returns the number of bytes that it received. With --tls-cert and
// --tls-key it serves HTTPS, and POST /reload reads the files again. If it has a --port, it then
// serves plain HTTP, too: on this port of 127.0.0.2 if it has an --address, or else on the next
// port of all addresses, which include 127.0.0.2. Plain clients may begin with HTTP/2.
#include <weir/http.hpp>
#include <weir/runtime/on_core.hpp>
#include <weir/tls.hpp>

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

template <std::size_t N>
http::Response zeros() {
  static constexpr char bytes[N + 1] = {};
  return {http::Status::ok, "application/octet-stream", http::Body(http::Literal(bytes))};
}

Task<Result<>> write_zeros(http::BodySink& body, int count) {
  const std::string piece(1024 * 1024, '\0');
  for (; count > 0; --count) WEIR_CO_TRY(co_await body.write(piece));
  co_return {};
}

http::Response hundred_mib() {
  return http::stream("application/octet-stream", {.length = 100 << 20}, write_zeros, 100);
}

Task<http::Response> upload(http::Request& request) {
  std::uint64_t received = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) co_return http::text(std::to_string(received));
    received += piece->size();
  }
}

Task<http::Status> reload(std::shared_ptr<tls::Server> tls) {
  const auto loaded = co_await tls->load();
  co_return loaded ? http::Status::ok : http::Status::internal_error;
}

/// Returns the endpoint of plain HTTP beside that of HTTPS.
Endpoint beside(const Endpoint& secure) {
  const bool on_all_addresses = secure == Endpoint::any(secure.port());
  if (!on_all_addresses) return Endpoint::ipv4({127, 0, 0, 2}, secure.port());
  return Endpoint::any(static_cast<std::uint16_t>(secure.port() + 1));
}

Task<Result<>> serve(Scope& scope, const http::Router& routes, http::ServeOptions options) {
  if (options.tls != nullptr && options.endpoint.port() != 0) {
    auto plain = options;
    plain.endpoint = beside(options.endpoint);
    plain.tls = nullptr;
    scope.spawn(http::serve(scope, routes, std::move(plain)));
  }
  co_return co_await http::serve(scope, routes, std::move(options));
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  const auto tls = options.tls;
  http::Router routes;
  routes.get("/", [] { return http::text("Hello Weir\n"); });
  routes.get("/190", poem);
  routes.get("/16k", zeros<16 * 1024>);
  routes.get("/1m", zeros<1024 * 1024>);
  routes.get("/100m", hundred_mib);
  routes.post("/upload", upload, {.body_max = std::uint64_t{1} << 30});
  routes.post("/ping", ping);
  if (tls != nullptr) routes.post("/reload", [tls] { return reload(tls); });
  auto serving = options.serve_options();
  serving.plain_http2 = http::PlainHttp2::prior_knowledge;
  Runtime runtime(options);
  const auto cores = static_cast<unsigned>(runtime.core_count());
  routes.post("/ping/elsewhere", [cores](Ping sent) { return ping_elsewhere(sent, cores); });
  return runtime.run_on_each_core(serve, std::cref(routes), serving);
}
