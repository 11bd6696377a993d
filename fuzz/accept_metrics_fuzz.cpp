// Parses any bytes as an Accept header of a scrape, and exports any bytes as names and values.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/telemetry/metrics/detail/exposition.hpp"

namespace {

using weir::fuzz::require;
using namespace weir::telemetry::detail;

/// Checks that a text has one line for each sample, whatever the values of the labels are.
void check_lines(std::string_view name, std::string_view value) {
  for (const Format format : {Format::text, Format::openmetrics}) {
    Exposition out(format);
    require(out.begin(name, value, value, MetricKind::counter));
    const std::size_t head = out.take().size();
    const std::array labels{Label("label", value)};
    out.sample(labels, 1);
    require(head > 0);
    const std::string line = out.take();
    require(line.ends_with(" 1\n") && line.find('\n') == line.size() - 1);
    std::size_t quotes = 0;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '\\') {
        ++at;
      } else if (line[at] == '"') {
        ++quotes;
      }
    }
    require(quotes == 0 || quotes == 2);
  }
  for (const char each : metric_name(name, value, MetricKind::gauge)) {
    require((each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || each == '_' ||
            (each >= '0' && each <= '9'));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The address sanitizer reports a read beyond the end of this copy.
  const weir::fuzz::ExactCopy copy({reinterpret_cast<const char*>(data), size});
  const std::string_view text = copy.view();
  const Format format = choose_format(text);
  // A member that names no format changes nothing.
  require(choose_format(std::string(text) + ",x/y;q=1") == format);
  if (!text.empty()) check_lines(text, text);
  return 0;
}
