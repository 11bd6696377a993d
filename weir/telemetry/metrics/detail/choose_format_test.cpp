// Tests of the choice of a format.
#include <gtest/gtest.h>

#include "weir/telemetry/metrics/detail/exposition.hpp"

namespace weir::telemetry::detail::choose_format_test {
namespace {

TEST(ChooseFormatTest, ChoosesTheFormatOfTheHighestQuality) {
  EXPECT_EQ(choose_format(""), Format::text);
  EXPECT_EQ(choose_format("*/*"), Format::text);
  EXPECT_EQ(choose_format("text/html,application/xhtml+xml,*/*;q=0.8"), Format::text);
  // Prometheus 2.42
  EXPECT_EQ(choose_format("application/openmetrics-text;version=1.0.0,"
                          "application/openmetrics-text;version=0.0.1;q=0.75,"
                          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::openmetrics);
  // Prometheus 2.42 with native histograms
  EXPECT_EQ(choose_format("application/vnd.google.protobuf;"
                          "proto=io.prometheus.client.MetricFamily;encoding=delimited,"
                          "application/openmetrics-text;version=1.0.0;q=0.8,"
                          "application/openmetrics-text;version=0.0.1;q=0.75,"
                          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::protobuf);
  EXPECT_EQ(choose_format("application/openmetrics-text; version=1.0.0; q=0.3, text/plain; q=0.4"),
            Format::text);
  EXPECT_EQ(choose_format("APPLICATION/OpenMetrics-Text;Version=\"1.0.0\";Q=1.000"),
            Format::openmetrics);
  EXPECT_EQ(choose_format("text/plain, application/openmetrics-text"), Format::openmetrics);
}

TEST(ChooseFormatTest, IgnoresWhatItCannotServe) {
  EXPECT_EQ(choose_format("application/openmetrics-text;version=2.0.0"), Format::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;q=0"), Format::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;q=2,text/plain;q=0.1"), Format::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;q=0.0001"), Format::text);
  EXPECT_EQ(choose_format("application/vnd.google.protobuf;encoding=text"), Format::text);
  EXPECT_EQ(choose_format(",;,;=,;q=,q=1,\"\",/"), Format::text);
}

}  // namespace
}  // namespace weir::telemetry::detail::choose_format_test
