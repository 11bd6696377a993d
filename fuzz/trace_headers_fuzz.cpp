// Reads any bytes as traceparent, tracestate, and as the response of a collector. What is accepted
// is written and read again without a change, and keeps its limits.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/telemetry/traces/detail/otlp.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
namespace telemetry = weir::telemetry;

void check_parent(std::string_view text) {
  const auto parent = telemetry::parse_traceparent(text);
  if (!parent) return;
  const std::string written = parent->text();
  require(written.size() == telemetry::TraceParent::text_size);
  require(written.substr(2, 51) == text.substr(2, 51));
  const auto again = telemetry::parse_traceparent(written);
  require(again && again->text() == written);
}

void check_state(std::string_view text) {
  const auto state = telemetry::TraceState::parse(text);
  if (!state) return;
  require(state->size() <= telemetry::TraceState::entries_max);
  const std::string written = state->text();
  require(written.size() <= telemetry::TraceState::bytes_max);
  const auto again = telemetry::TraceState::parse(written);
  require(again && again->text() == written);
}

void check_response(std::string_view text) {
  for (const auto encoding : {telemetry::OtlpEncoding::protobuf, telemetry::OtlpEncoding::json}) {
    const auto response = telemetry::parse_export_response(text, encoding);
    if (response) require(response->message.size() <= 3 * text.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ExactCopy copy(text);
  check_parent(copy.view());
  check_state(copy.view());
  check_response(copy.view());
  return 0;
}
