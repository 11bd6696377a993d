#include "weir/telemetry/metrics/detail/exposition.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace weir::telemetry::detail::exposition_test {
namespace {

TEST(MetricNameTest, HasTheUnitOfOpenTelemetry) {
  const auto counter = MetricKind::counter;
  const auto gauge = MetricKind::gauge;
  EXPECT_EQ(metric_name("http.server.request.duration", "s", MetricKind::histogram),
            "http_server_request_duration_seconds");
  EXPECT_EQ(metric_name("weir.core.cached", "By", gauge), "weir_core_cached_bytes");
  EXPECT_EQ(metric_name("orders_total", "{order}", counter), "orders");
  EXPECT_EQ(metric_name("load", "1", gauge), "load_ratio");
  EXPECT_EQ(metric_name("load", "1", counter), "load");
  EXPECT_EQ(metric_name("speed", "By/s", gauge), "speed_bytes_per_second");
  EXPECT_EQ(metric_name("wait_seconds", "s", gauge), "wait_seconds");
  EXPECT_EQ(metric_name("look-ups: failed ", "", counter), "look_ups_failed");
  EXPECT_EQ(metric_name("2nd", "", counter), "_2nd");
  EXPECT_EQ(metric_name("\xc3\xa4", "", counter), "_");
  EXPECT_EQ(label_name("http.route"), "http_route");
  EXPECT_EQ(label_name("__name__"), "_name");
}

std::string write(Format format) {
  Exposition out(format);
  const std::array labels{Label("kind", "a \"b\"\\\n"), Label("none", "")};
  EXPECT_TRUE(out.begin("orders", "{order}", "Two\nlines \\ \"quoted\".", MetricKind::counter));
  out.sample(labels, 3);
  out.sample({}, 1e20);
  out.end();
  EXPECT_FALSE(out.begin("orders", "", "", MetricKind::counter)) << "the family exists";
  EXPECT_TRUE(out.begin("fill", "1", "", MetricKind::gauge));
  out.sample({}, 0.5);
  out.sample({}, std::numeric_limits<double>::quiet_NaN());
  out.sample({}, -std::numeric_limits<double>::infinity());
  out.end();
  EXPECT_TRUE(out.begin("wait", "s", "Wait.", MetricKind::histogram));
  const HistogramLayout layout{.bounds = {0.5, 1}, .native = true, .zero_key = -8};
  HistogramData data{.sum = 7.5, .counts = {1, 0, 2}};
  data.native_counts.resize(std::size_t{NativeBuckets::count} + 1);
  data.native_counts[0] = 1;
  data.native_counts[9] = 2;
  out.histogram(labels, layout, data);
  out.end();
  out.finish();
  return out.take();
}

TEST(ExpositionTest, WritesText) {
  EXPECT_EQ(write(Format::text),
            "# HELP orders_total Two\\nlines \\\\ \"quoted\".\n"
            "# TYPE orders_total counter\n"
            "orders_total{kind=\"a \\\"b\\\"\\\\\\n\"} 3\n"
            "orders_total 1e+20\n"
            "# TYPE fill_ratio gauge\n"
            "fill_ratio 0.5\n"
            "fill_ratio NaN\n"
            "fill_ratio -Inf\n"
            "# HELP wait_seconds Wait.\n"
            "# TYPE wait_seconds histogram\n"
            "wait_seconds_bucket{kind=\"a \\\"b\\\"\\\\\\n\",le=\"0.5\"} 1\n"
            "wait_seconds_bucket{kind=\"a \\\"b\\\"\\\\\\n\",le=\"1\"} 1\n"
            "wait_seconds_bucket{kind=\"a \\\"b\\\"\\\\\\n\",le=\"+Inf\"} 3\n"
            "wait_seconds_sum{kind=\"a \\\"b\\\"\\\\\\n\"} 7.5\n"
            "wait_seconds_count{kind=\"a \\\"b\\\"\\\\\\n\"} 3\n");
}

TEST(ExpositionTest, WritesOpenMetrics) {
  const std::string text = write(Format::openmetrics);
  EXPECT_TRUE(
      text.starts_with("# HELP orders Two\\nlines \\\\ \\\"quoted\\\".\n"
                       "# TYPE orders counter\n"
                       "orders_total{"))
      << text;
  EXPECT_NE(text.find("# UNIT fill_ratio ratio\n"), text.npos) << text;
  EXPECT_NE(text.find("# UNIT wait_seconds seconds\n"), text.npos) << text;
  EXPECT_NE(text.find("le=\"1.0\""), text.npos) << text;
  EXPECT_TRUE(text.ends_with("\n# EOF\n")) << text;
}

TEST(ExpositionTest, MakesLabelValuesPrintable) {
  Exposition out(Format::text);
  out.begin("x", "", "", MetricKind::gauge);
  for (const char* const value : {"ok\xff", "caf\xc3\xa9", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                                  "\xf4\x90\x80\x80", "\xe2\x82\xac!", "a\x1b[31m\nb"}) {
    const std::array labels{Label("v", value), Label("w", "1")};
    out.sample(labels, 0);
  }
  EXPECT_EQ(out.take(),
            "# TYPE x gauge\n"
            R"(x{v="ok\\xff",w="1"} 0)"
            "\nx{v=\"caf\xc3\xa9\",w=\"1\"} 0\n"
            R"(x{v="\\xc3",w="1"} 0
x{v="\\xe0\\x80\\x80",w="1"} 0
x{v="\\xed\\xa0\\x80",w="1"} 0
x{v="\\xf4\\x90\\x80\\x80",w="1"} 0)"
            "\nx{v=\"\xe2\x82\xac!\",w=\"1\"} 0\n"
            R"(x{v="a\\x1b[31m\nb",w="1"} 0)"
            "\n");
}

TEST(ExpositionTest, WritesDelimitedMessages) {
  const std::string bytes = write(Format::protobuf);
  // tests/metrics_test.py decodes the messages with the library of Protocol Buffers.
  std::size_t at = 0;
  int families = 0;
  while (at < bytes.size()) {
    std::size_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto part = static_cast<unsigned char>(bytes.at(at++));
      size |= std::size_t{part & 0x7fU} << shift;
      if (part < 0x80) break;
    }
    ASSERT_LE(size, bytes.size() - at);
    EXPECT_EQ(bytes[at], '\x0a') << "a family begins with its name";
    at += size;
    ++families;
  }
  EXPECT_EQ(families, 3);
}

TEST(ExpositionTest, WritesALargeFamilyInPieces) {
  for (const Format format : {Format::text, Format::openmetrics, Format::protobuf}) {
    Exposition whole(format);
    Exposition out(format);
    std::string expected;
    std::string pieces;
    for (int family = 0; family < 3; ++family) {
      const std::string name = "family" + std::to_string(family);
      out.begin(name, "", "Help.", MetricKind::gauge);
      whole.begin(name, "", "Help.", MetricKind::gauge);
      for (int number = 0; number < 2000 * family; ++number) {
        const std::string text = std::to_string(number);
        const std::array labels{Label("number", text)};
        out.sample(labels, number);
        whole.sample(labels, number);
        while (out.has_piece()) {
          const std::string piece = out.take();
          EXPECT_FALSE(piece.empty());
          EXPECT_LE(piece.size(), 2 * Exposition::piece_bytes + 100);
          pieces += piece;
        }
      }
      out.end();
      whole.end();
    }
    for (std::string piece = out.take(); !piece.empty(); piece = out.take()) {
      EXPECT_LE(piece.size(), 2 * Exposition::piece_bytes + 100);
      pieces += piece;
    }
    for (std::string piece = whole.take(); !piece.empty(); piece = whole.take()) expected += piece;
    EXPECT_TRUE(pieces == expected);
    EXPECT_GT(pieces.size(), 6 * Exposition::piece_bytes);
  }
}

}  // namespace
}  // namespace weir::telemetry::detail::exposition_test
