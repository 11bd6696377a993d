// Reads the variables of OpenTelemetry.
#include "weir/telemetry/traces/trace_options.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/compression/coding.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::telemetry {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& each : out) {
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  }
  return out;
}

template <class T>
std::optional<T> number_of(std::string_view text, int base = 10) noexcept {
  T number{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>) {
    read = std::from_chars(text.data(), text.data() + text.size(), number);
  } else {
    read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  }
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    const std::string_view digits = text.substr(at + 1, 2);
    const auto byte = number_of<std::uint8_t>(digits, 16);
    if (digits.size() != 2 || !byte) return std::nullopt;
    out += static_cast<char>(*byte);
    at += 2;
  }
  return out;
}

/// Reads "name=value,name=value" with percent-encoded values.
std::optional<Pairs> pairs_of(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = http::trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) return std::nullopt;
    const std::string_view key = http::trim(entry.substr(0, equals));
    auto value = percent_decoded(http::trim(entry.substr(equals + 1)));
    if (key.empty() || !value) return std::nullopt;
    pairs.emplace_back(key, std::move(*value));
  }
  return pairs;
}

class VariableReader {
 public:
  VariableReader(const TraceOptions::Variables& variables, TraceOptions& options) noexcept
      : variables_(variables), options_(options) {}

  void read() {
    read_bool("OTEL_SDK_DISABLED", disabled_);
    options_.enabled = !disabled_;
    read_resource();
    read_sampler();
    read_propagators();
    read_batches();
    read_exporter();
    warn_of_others();
  }

 private:
  /// Returns the value of a variable that is set and not empty.
  std::optional<std::string_view> get(std::string_view name) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    known_.insert(found->first);
    const std::string_view value = http::trim(found->second);
    if (value.empty()) return std::nullopt;
    return value;
  }
  /// Names the variables that nothing has read.
  void warn_of_others() {
    for (const auto& [name, value] : variables_) {
      if (!name.starts_with("OTEL_") || http::trim(value).empty() || known_.contains(name))
        continue;
      // Metrics are scraped, so this is no surprise.
      if (name == "OTEL_METRICS_EXPORTER" && lower(value) == "none") continue;
      warn(name, "this variable is not supported");
    }
  }
  /// Warns without the value, which may be a secret.
  void warn(std::string_view name, std::string_view why) {
    options_.warnings.push_back(std::string(name).append(": ").append(why));
  }

  void read_bool(std::string_view name, bool& out) {
    const auto given = get(name);
    if (!given) return;
    const std::string value = lower(*given);
    out = value == "true";
    if (!out && value != "false") warn(name, "expected true or false");
  }
  void read_propagators() {
    constexpr std::string_view name = "OTEL_PROPAGATORS";
    const auto given = get(name);
    if (given && lower(*given) != "tracecontext") warn(name, "the only propagator is tracecontext");
  }

  void read_resource() {
    constexpr std::string_view attributes = "OTEL_RESOURCE_ATTRIBUTES";
    if (const auto text = get(attributes)) {
      if (auto pairs = pairs_of(*text)) {
        for (auto& [key, value] : *pairs) {
          if (key == "service.name") {
            options_.service_name = value;
          } else {
            options_.resource.emplace_back(std::move(key), std::move(value));
          }
        }
      } else {
        warn(attributes, "expected key=value pairs, separated by commas");
      }
    }
    if (const auto name = get("OTEL_SERVICE_NAME")) options_.service_name = *name;
  }

  void read_sampler() {
    constexpr std::string_view variable = "OTEL_TRACES_SAMPLER";
    const std::string name = lower(get(variable).value_or(""));
    if (!name.ends_with("traceidratio") && get("OTEL_TRACES_SAMPLER_ARG")) {
      warn("OTEL_TRACES_SAMPLER_ARG", "the sampler takes no argument");
    }
    if (name.empty()) return;
    constexpr std::string_view parent_based = "parentbased_";
    const bool follows = name.starts_with(parent_based);
    const std::string_view root =
        follows ? std::string_view(name).substr(parent_based.size()) : std::string_view(name);
    Sampler sampler = Sampler::always_on();
    if (root == "always_off") {
      sampler = Sampler::always_off();
    } else if (root == "traceidratio") {
      sampler = Sampler::ratio(read_ratio());
    } else if (root != "always_on") {
      return warn(variable, "unknown sampler");
    }
    options_.sampler = follows ? Sampler::parent_based(sampler) : sampler;
  }
  double read_ratio() {
    constexpr std::string_view variable = "OTEL_TRACES_SAMPLER_ARG";
    const auto given = get(variable);
    if (!given) return 1;
    const auto ratio = number_of<double>(*given);
    if (ratio && *ratio >= 0 && *ratio <= 1) return *ratio;
    warn(variable, "expected a number from 0 to 1");
    return 1;
  }

  void read_duration(std::string_view name, Duration& out) {
    const auto given = get(name);
    if (!given) return;
    const auto number = number_of<std::uint32_t>(*given);
    if (!number || *number == 0) return warn(name, "expected a number of milliseconds above 0");
    out = std::chrono::milliseconds(*number);
  }
  void read_count(std::string_view name, std::size_t& out) {
    const auto given = get(name);
    if (!given) return;
    const auto number = number_of<std::uint32_t>(*given);
    if (!number || *number == 0) return warn(name, "expected a number above 0");
    out = *number;
  }
  void read_batches() {
    read_duration("OTEL_BSP_SCHEDULE_DELAY", options_.batch_delay);
    read_duration("OTEL_BSP_EXPORT_TIMEOUT", options_.export_timeout);
    read_count("OTEL_BSP_MAX_QUEUE_SIZE", options_.queue_capacity);
    read_count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", options_.batch_max);
    options_.batch_max = std::min(options_.batch_max, options_.queue_capacity);
  }

  void read_exporter() {
    read_url("TRACES", "/v1/traces", options_.traces_url);
    read_url("LOGS", "/v1/logs", options_.logs_url);
    // The headers of a signal replace those of both.
    TraceOptions::Headers both = read_headers("OTEL_EXPORTER_OTLP_HEADERS").value_or(Pairs());
    auto traces = read_headers("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
    auto logs = read_headers("OTEL_EXPORTER_OTLP_LOGS_HEADERS");
    if (traces || logs) {
      options_.traces_headers = std::move(traces).value_or(both);
      options_.logs_headers = std::move(logs).value_or(both);
    } else {
      options_.headers = std::move(both);
    }
    for (const std::string_view signal : {"", "TRACES_"}) {
      const std::string prefix = std::string("OTEL_EXPORTER_OTLP_").append(signal);
      read_protocol(prefix + "PROTOCOL");
      read_duration(prefix + "TIMEOUT", options_.export_timeout);
      read_compression(prefix + "COMPRESSION");
    }
  }
  void read_url(std::string_view signal, std::string_view path, std::string& out) {
    const std::string of_signal = "OTEL_EXPORTER_OTLP_" + std::string(signal) + "_ENDPOINT";
    constexpr std::string_view of_all = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const auto base = get(of_all);
    if (const auto given = get(of_signal)) {
      set_url(of_signal, std::string(*given), out);
    } else if (base) {
      std::string url(*base);
      while (url.ends_with('/')) url.pop_back();
      set_url(of_all, url.append(path), out);
    }
    const std::string exporter = "OTEL_" + std::string(signal) + "_EXPORTER";
    if (const auto given = get(exporter)) {
      const std::string value = lower(*given);
      if (value == "none") {
        out.clear();
      } else if (value != "otlp") {
        warn(exporter, "the exporters are otlp and none");
      }
    }
  }
  void set_url(std::string_view name, std::string url, std::string& out) {
    if (!http::Url::parse(url)) return warn(name, "expected a URL with the scheme http or https");
    out = std::move(url);
  }
  std::optional<Pairs> read_headers(std::string_view name) {
    const auto given = get(name);
    if (!given) return std::nullopt;
    auto pairs = pairs_of(*given);
    if (!pairs) {
      warn(name, "expected name=value pairs, separated by commas");
      return std::nullopt;
    }
    for (const auto& [key, value] : *pairs) {
      if (http::is_valid_header(key, value)) continue;
      warn(name, "a header is invalid");
      return std::nullopt;
    }
    return pairs;
  }
  void read_protocol(std::string_view name) {
    const auto given = get(name);
    if (!given) return;
    const std::string value = lower(*given);
    if (value == "http/protobuf") {
      options_.encoding = OtlpEncoding::protobuf;
    } else if (value == "http/json") {
      options_.encoding = OtlpEncoding::json;
    } else {
      warn(name, "the protocols are http/protobuf and http/json");
    }
  }
  void read_compression(std::string_view name) {
    const auto given = get(name);
    if (!given) return;
    const std::string value = lower(*given);
    const bool available = compression::is_available(compression::Coding::gzip);
    if (value == "none") {
      options_.gzip = false;
    } else if (value != "gzip") {
      warn(name, "the compressions are gzip and none");
    } else if (!available) {
      warn(name, "this build has no zlib");
    } else {
      options_.gzip = true;
    }
  }

  const TraceOptions::Variables& variables_;
  TraceOptions& options_;
  std::set<std::string_view> known_;  // the variables that were read
  bool disabled_ = false;
};

}  // namespace

TraceOptions TraceOptions::from_variables(const Variables& variables) {
  TraceOptions options;
  VariableReader(variables, options).read();
  return options;
}

TraceOptions::Variables variables_of(const char* const* environment) {
  TraceOptions::Variables variables;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

}  // namespace weir::telemetry
