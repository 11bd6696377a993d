#include "weir/http/server/detail/request_recorder.hpp"

#include <span>
#include <utility>

namespace weir::http {

RequestRecorder::RequestRecorder(Loop& loop, ServerObserver& observer) noexcept
    : TurnObserver([](TurnObserver& self) { static_cast<RequestRecorder&>(self).flush(); }),
      loop_(loop),
      observer_(observer) {
  loop.metrics().add(*this);
}

RequestRecorder::~RequestRecorder() {
  if (count_ != 0) flush();
  detach();
}

void RequestRecorder::flush() noexcept {
  TurnObserver::unlink();
  const std::size_t count = std::exchange(count_, 0);
  observer_.on_requests_ended(loop_, loop_.now(), std::span(records_.data(), count));
}

void RequestRecorder::collect(MetricSnapshot& sum) const {
  static constexpr MetricInfo info{.name = "http.server.active_requests",
                                   .unit = "{request}",
                                   .help = "Number of requests that have begun and not ended."};
  sum.add({"http requests active", active_.value(), Metric::Kind::gauge, &info});
}

}  // namespace weir::http
