// traces: a service whose requests, calls and own spans go to a collector of OpenTelemetry. With
// one on port 4318: OTEL_SERVICE_NAME=shop ./dev run traces, then curl localhost:8080/buy/tea
#include <weir/http.hpp>
#include <weir/log/log_service.hpp>
#include <weir/loop/os/os_platform.hpp>
#include <weir/telemetry.hpp>
#include <weir/tls.hpp>

using namespace weir;

class Shop {
 public:
  Shop(telemetry::Tracer& tracer, const Logger& log) : traces_(tracer), log_(log) {}

  Task<Result<int>> price_of(std::string item) {
    const telemetry::Span span("look up");
    if (auto slept = co_await sleep(2ms); !slept) co_return fail(slept.error());
    if (item != "tea") co_return fail(Errc::not_found);
    co_return 250;
  }

  Task<Result<http::Response>> buy(std::string url, std::string item) {
    auto looking = telemetry::in_span("price", price_of(item));
    WEIR_CO_TRY(const int cents, co_await std::move(looking));
    http::ClientOptions options;
    options.observer = &traces_;
    http::Client client(std::move(options));
    WEIR_CO_TRY(auto reserved, co_await client.get(url + "/stock/" + item));
    const std::string rest = co_await left(reserved);
    log_.info("sold", field("item", item), field("left", rest));
    co_return http::text(item + ": " + std::to_string(cents) + "\n");
  }

  http::Response stock(const http::Request& request, std::string_view item) {
    if (telemetry::Span* const span = telemetry::span_of(request)) {
      span->set_attribute("shop.item", item);
    }
    return http::text("17");
  }

 private:
  static Task<std::string> left(http::ClientResponse& response) {
    auto body = co_await response.body();
    co_return std::move(body).value_or("unknown");
  }

  telemetry::TraceClient traces_;
  Logger log_;
};

int main(int argc, char** argv, char** environment) {
  const auto options = http::ProgramOptions::from_args(argc, argv);
  OsPlatform platform;
  const auto variables = telemetry::variables_of(environment);
  telemetry::Tracer tracer(platform, telemetry::TraceOptions::from_variables(variables));
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(platform_log_sink(platform));
  sinks.push_back(std::make_unique<telemetry::OtlpLogSink>(tracer));
  LogService logs(platform, {}, std::move(sinks));
  const Logger log = logs.logger("shop");
  for (const std::string& warning : tracer.options().warnings) log.warning(warning);

  Shop shop(tracer, log);
  http::Router routes;
  routes.use(telemetry::trace_requests(tracer));
  // This service itself; the Host of a request is a choice of the client, and may be any address.
  const std::string own = "http://127.0.0.1:" + std::to_string(options.endpoint.port());
  routes.get("/buy/{item}", [&](std::string item) { return shop.buy(own, std::move(item)); });
  routes.get("/stock/{item}", [&shop](const http::Request& request, std::string_view item) {
    return shop.stock(request, item);
  });
  return Runtime(platform, options).run_on_each_core([&](Scope& scope) -> Task<Result<>> {
    tracer.start(scope);
    const http::ServeOptions serving = options.serve_options();
    co_return co_await http::serve(scope, routes, serving);
  });
}
