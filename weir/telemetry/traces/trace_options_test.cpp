// Tests the variables of OpenTelemetry.
#include "weir/telemetry/traces/trace_options.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "weir/compression/coding.hpp"

namespace weir::telemetry::trace_options_test {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Warnings = std::vector<std::string>;

TraceId id_of(std::uint8_t byte8) {
  TraceId id{};
  id[8] = byte8;
  return id;
}

TEST(TraceOptions, HaveTheDefaultsOfTheSpecification) {
  const TraceOptions options = TraceOptions::from_variables({});
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.service_name, "unknown_service");
  EXPECT_EQ(options.traces_url, "http://localhost:4318/v1/traces");
  EXPECT_EQ(options.logs_url, "http://localhost:4318/v1/logs");
  EXPECT_EQ(options.encoding, OtlpEncoding::protobuf);
  EXPECT_EQ(options.batch_delay, std::chrono::seconds(5));
  EXPECT_EQ(options.batch_max, 512U);
  EXPECT_EQ(options.queue_capacity, 2048U);
  EXPECT_TRUE(options.sampler.samples(id_of(0xff)));
  EXPECT_FALSE(options.sampler.samples(id_of(0), false));
  EXPECT_EQ(options.warnings, Warnings{});
}

TEST(TraceOptions, ReadTheResource) {
  const auto options = TraceOptions::from_variables(
      {{"OTEL_RESOURCE_ATTRIBUTES", "service.name=ignored, deployment.environment.name=a%20b%2Cc,"},
       {"OTEL_SERVICE_NAME", "shop"}});
  EXPECT_EQ(options.service_name, "shop");
  EXPECT_EQ(options.resource, (Pairs{{"deployment.environment.name", "a b,c"}}));
  EXPECT_EQ(
      TraceOptions::from_variables({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=x"}}).service_name,
      "x");
}

TEST(TraceOptions, ReadTheSampler) {
  const auto with = [](std::string name, std::string argument = "") {
    return TraceOptions::from_variables({{"OTEL_TRACES_SAMPLER", std::move(name)},
                                         {"OTEL_TRACES_SAMPLER_ARG", std::move(argument)}})
        .sampler;
  };
  EXPECT_FALSE(with("always_off").samples(id_of(0)));
  EXPECT_TRUE(with("always_on").samples(id_of(0xff), false));
  EXPECT_TRUE(with("traceidratio", "0.25").samples(id_of(0x3f)));
  EXPECT_FALSE(with("traceidratio", "0.25").samples(id_of(0x40), true));
  EXPECT_FALSE(with("parentbased_traceidratio", "0.25").samples(id_of(0x40)));
  EXPECT_TRUE(with("PARENTBASED_traceidratio", "0.25").samples(id_of(0x40), true));
  EXPECT_FALSE(with("parentbased_always_off").samples(id_of(0)));
  EXPECT_TRUE(with("traceidratio").samples(id_of(0xff)));
}

TEST(TraceOptions, ReadTheCollector) {
  const auto options = TraceOptions::from_variables(
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318/base/"},
       {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs.example/own"},
       {"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20eDp5,x-a=1"},
       {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
       {"OTEL_EXPORTER_OTLP_TIMEOUT", "1500"},
       {"OTEL_TRACES_EXPORTER", "OTLP"},
       {"OTEL_BSP_SCHEDULE_DELAY", "200"},
       {"OTEL_BSP_MAX_QUEUE_SIZE", "100"},
       {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "200"}});
  EXPECT_EQ(options.traces_url, "https://collector.example:4318/base/v1/traces");
  EXPECT_EQ(options.logs_url, "http://logs.example/own");
  EXPECT_EQ(options.headers, (Pairs{{"authorization", "Basic eDp5"}, {"x-a", "1"}}));
  EXPECT_EQ(options.encoding, OtlpEncoding::json);
  EXPECT_EQ(options.export_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.batch_delay, std::chrono::milliseconds(200));
  EXPECT_EQ(options.queue_capacity, 100U);
  EXPECT_EQ(options.batch_max, 100U) << "at most a whole queue";
  EXPECT_EQ(options.warnings, Warnings{});
}

TEST(TraceOptions, PreferTheVariablesOfASignal) {
  const auto options = TraceOptions::from_variables(
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://both:4318"},
       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/spans"},
       {"OTEL_EXPORTER_OTLP_HEADERS", "a=both"},
       {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=traces"},
       {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"},
       {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "HTTP/JSON"},
       {"OTEL_EXPORTER_OTLP_TIMEOUT", "1000"},
       {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2000"}});
  EXPECT_EQ(options.traces_url, "http://traces:4318/spans");
  EXPECT_EQ(options.logs_url, "http://both:4318/v1/logs");
  EXPECT_EQ(options.headers, Pairs{});
  EXPECT_EQ(options.traces_headers, (Pairs{{"b", "traces"}}));
  EXPECT_EQ(options.logs_headers, (Pairs{{"a", "both"}}));
  EXPECT_EQ(options.encoding, OtlpEncoding::json);
  EXPECT_EQ(options.export_timeout, std::chrono::seconds(2));
  EXPECT_EQ(options.warnings, Warnings{});
  EXPECT_EQ(TraceOptions::from_variables({{"OTEL_BSP_EXPORT_TIMEOUT", "3000"}}).export_timeout,
            std::chrono::seconds(3));
}

TEST(TraceOptions, CompressIfTheBuildCan) {
  const auto with = [](std::string value) {
    return TraceOptions::from_variables({{"OTEL_EXPORTER_OTLP_COMPRESSION", std::move(value)}});
  };
  EXPECT_FALSE(with("none").gzip);
  EXPECT_EQ(with("none").warnings, Warnings{});
  EXPECT_FALSE(with("zstd").gzip);
  EXPECT_EQ(with("zstd").warnings,
            Warnings{"OTEL_EXPORTER_OTLP_COMPRESSION: the compressions are gzip and none"});
  if (compression::is_available(compression::Coding::gzip)) {
    EXPECT_TRUE(with("GZIP").gzip);
    EXPECT_EQ(with("gzip").warnings, Warnings{});
    EXPECT_FALSE(TraceOptions::from_variables({{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                                               {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none"}})
                     .gzip);
  } else {
    EXPECT_FALSE(with("gzip").gzip);
    EXPECT_EQ(with("gzip").warnings,
              Warnings{"OTEL_EXPORTER_OTLP_COMPRESSION: this build has no zlib"});
  }
}

TEST(TraceOptions, WarnOfVariablesThatHaveNoEffect) {
  const auto options =
      TraceOptions::from_variables({{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/ca.pem"},
                                    {"OTEL_EXPORTER_OTLP_INSECURE", ""},
                                    {"OTEL_METRICS_EXPORTER", "none"},
                                    {"OTEL_PROPAGATORS", "tracecontext,baggage"},
                                    {"OTEL_SPAN_EVENT_COUNT_LIMIT", "7"},
                                    {"OTEL_TRACES_SAMPLER", "always_off"},
                                    {"OTEL_TRACES_SAMPLER_ARG", "0.5"},
                                    {"OTHER", "x"}});
  EXPECT_EQ(options.warnings,
            (Warnings{"OTEL_TRACES_SAMPLER_ARG: the sampler takes no argument",
                      "OTEL_PROPAGATORS: the only propagator is tracecontext",
                      "OTEL_EXPORTER_OTLP_CERTIFICATE: this variable is not supported",
                      "OTEL_SPAN_EVENT_COUNT_LIMIT: this variable is not supported"}));
  EXPECT_EQ(TraceOptions::from_variables({{"OTEL_PROPAGATORS", "tracecontext"}}).warnings,
            Warnings{});
}

TEST(TraceOptions, CanBeDisabled) {
  EXPECT_FALSE(TraceOptions::from_variables({{"OTEL_SDK_DISABLED", "True"}}).enabled);
  const auto unclear = TraceOptions::from_variables({{"OTEL_SDK_DISABLED", "1"}});
  EXPECT_TRUE(unclear.enabled);
  EXPECT_EQ(unclear.warnings, Warnings{"OTEL_SDK_DISABLED: expected true or false"});
  const auto options = TraceOptions::from_variables({{"OTEL_LOGS_EXPORTER", "none"}});
  EXPECT_EQ(options.logs_url, "");
  EXPECT_NE(options.traces_url, "");
}

TEST(TraceOptions, WarnOfInvalidVariablesWithoutTheirValues) {
  const auto options = TraceOptions::from_variables({{"OTEL_BSP_MAX_QUEUE_SIZE", "secret"},
                                                     {"OTEL_BSP_SCHEDULE_DELAY", "-5"},
                                                     {"OTEL_EXPORTER_OTLP_ENDPOINT", "secret"},
                                                     {"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
                                                     {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                                                     {"OTEL_RESOURCE_ATTRIBUTES", "a=%zz"},
                                                     {"OTEL_TRACES_EXPORTER", "zipkin"},
                                                     {"OTEL_TRACES_SAMPLER", "traceidratio"},
                                                     {"OTEL_TRACES_SAMPLER_ARG", "2"}});
  EXPECT_EQ(
      options.warnings,
      (Warnings{"OTEL_RESOURCE_ATTRIBUTES: expected key=value pairs, separated by commas",
                "OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1",
                "OTEL_BSP_SCHEDULE_DELAY: expected a number of milliseconds above 0",
                "OTEL_BSP_MAX_QUEUE_SIZE: expected a number above 0",
                "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL with the scheme http or https",
                "OTEL_TRACES_EXPORTER: the exporters are otlp and none",
                "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL with the scheme http or https",
                "OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs, separated by commas",
                "OTEL_EXPORTER_OTLP_PROTOCOL: the protocols are http/protobuf and http/json"}));
  EXPECT_EQ(options.queue_capacity, 2048U);
  EXPECT_EQ(options.traces_url, "http://localhost:4318/v1/traces");
  EXPECT_TRUE(options.sampler.samples(id_of(0xff)));
}

TEST(TraceOptions, ReadTheEnvironmentOfMain) {
  const std::array<const char*, 5> environment{"A=1", "B=x=y", "C", "D=", nullptr};
  const auto variables = variables_of(environment.data());
  EXPECT_EQ(variables, (TraceOptions::Variables{{"A", "1"}, {"B", "x=y"}, {"D", ""}}));
}

}  // namespace
}  // namespace weir::telemetry::trace_options_test
