#include "weir/telemetry/metrics/client_metrics.hpp"

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/http/client/client_response.hpp"
#include "weir/loop/loop.hpp"

namespace weir::telemetry {
namespace {

std::string_view version_text(http::Version version) noexcept {
  switch (version) {
    case http::Version::http_1_0:
      return "1.0";
    case http::Version::http_1_1:
      return "1.1";
    case http::Version::http_2:
      return "2";
  }
  return {};
}

/// Measures one request.
class MeasuredCall final : public http::ClientObserver::Call {
 public:
  MeasuredCall(const Histogram& durations, Loop& loop, const http::ClientRequest& request,
               std::unique_ptr<Call> next)
      : durations_(durations),
        loop_(loop),
        begin_(loop.platform().now()),
        method_(request.method() == http::Method::other ? "_OTHER"
                                                        : http::name_of(request.method())),
        address_(request.url().host()),
        port_(std::to_string(request.url().port())),
        next_(std::move(next)) {}

  void on_response(const http::ClientResponse& response) noexcept override {
    if (next_ != nullptr) next_->on_response(response);
    try {
      const std::string status = std::to_string(http::code_of(response.status()));
      const bool failed = response.status() >= http::Status::bad_request;
      record(status, version_text(response.version()), failed ? status : std::string());
    } catch (const std::bad_alloc&) {
      // It is not counted.
    }
  }
  void on_websocket(bool is_http2) noexcept override {
    if (next_ != nullptr) next_->on_websocket(is_http2);
    try {
      record(is_http2 ? "200" : "101",
             version_text(is_http2 ? http::Version::http_2 : http::Version::http_1_1), "");
    } catch (const std::bad_alloc&) {
      // It is not counted.
    }
  }
  void on_error(std::error_code error) noexcept override {
    if (next_ != nullptr) next_->on_error(error);
    try {
      record("", "", std::string(error.category().name()) + ":" + std::to_string(error.value()));
    } catch (const std::bad_alloc&) {
      // It is not counted.
    }
  }

 private:
  void record(std::string_view status, std::string_view version, std::string_view error) {
    durations_.with(method_, address_, port_, status, version, error)
        .record(loop_.platform().now() - begin_);
  }

  const Histogram& durations_;
  Loop& loop_;
  const Instant begin_;
  const std::string_view method_;
  const std::string address_;
  const std::string port_;
  const std::unique_ptr<Call> next_;
};

}  // namespace

ClientMetrics::ClientMetrics(const ClientMetricsOptions& options)
    : durations_("http.client.request.duration",
                 {.help = "Duration of HTTP client requests.",
                  .labels = {"http.request.method", "server.address", "server.port",
                             "http.response.status_code", "network.protocol.version", "error.type"},
                  .label_sets_max = options.label_sets_max,
                  .native = options.native}),
      next_(options.next) {}

std::unique_ptr<http::ClientObserver::Call> ClientMetrics::begin(http::ClientRequest& request) {
  std::unique_ptr<Call> next = next_ != nullptr ? next_->begin(request) : nullptr;
  Loop* const loop = Loop::current();
  if (loop == nullptr || request.error()) return next;
  return std::make_unique<MeasuredCall>(durations_, *loop, request, std::move(next));
}

}  // namespace weir::telemetry
