// traced_server: the requests of the works B2 and B13 with spans, which OTEL_ variables set up.
// With OTEL_SDK_DISABLED=true, its router has no filter. bench/traces.py compares both.
#include <string>
#include <utility>

#include "weir/http.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/options.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/telemetry/traces/http_spans.hpp"
#include "weir/telemetry/traces/trace_options.hpp"
#include "weir/telemetry/traces/tracer.hpp"

using namespace weir;

struct Ping {
  int sequence;
};

int main(int argc, char** argv, char** environment) {
  const auto options = ServerOptions::from_args(argc, argv);
  OsPlatform platform;
  const auto variables = telemetry::variables_of(environment);
  telemetry::Tracer tracer(platform, telemetry::TraceOptions::from_variables(variables));
  http::Router routes;
  if (tracer.enabled()) routes.use(telemetry::trace_requests(tracer));
  routes.get("/", [] { return http::text("Hello Weir\n"); });
  routes.post("/ping", [](Ping ping) { return ping; });
  routes.get("/counts", [&tracer] {
    const telemetry::TraceReport report = tracer.report();
    std::string text;
    for (const auto& [name, count] :
         {std::pair("exported", report.spans.exported), std::pair("dropped", report.spans.dropped),
          std::pair("failed", report.spans.failed), std::pair("queued", report.spans.queued)}) {
      text.append(name).append(" ").append(std::to_string(count)).append("\n");
    }
    return http::text(std::move(text));
  });
  return Runtime(platform, options).run_on_each_core([&](Scope& scope) -> Task<Result<>> {
    tracer.start(scope);
    const http::ServeOptions serving{.endpoint = options.endpoint};
    co_return co_await http::serve(scope, routes, serving);
  });
}
