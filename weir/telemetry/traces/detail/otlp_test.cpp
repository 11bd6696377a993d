// Tests the messages of OTLP. tests/otlp_test.py decodes them with the published definitions.
#include "weir/telemetry/traces/detail/otlp.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/version.hpp"
#include "weir/telemetry/traces/test/traces_fixture.hpp"

namespace weir::telemetry::otlp_test {
namespace {

using std::string_view_literals::operator""sv;

/// Returns the request with these spans.
std::string request_of(const Attributes& resource, const SpanData& span, OtlpEncoding encoding) {
  OtlpRequest request(OtlpRequest::Signal::spans, encoding);
  request.add(span);
  return request.body(resource);
}
/// Returns the request with these log records.
std::string request_of(const Attributes& resource, const std::vector<LogData>& records,
                       OtlpEncoding encoding) {
  OtlpRequest request(OtlpRequest::Signal::logs, encoding);
  for (const LogData& each : records) request.add(each);
  return request.body(resource);
}

TEST(Otlp, WritesSpansInProtocolBuffers) {
  const std::string request = request_of(sample_resource(), sample_span(), OtlpEncoding::protobuf);
  const Fields resource_spans = fields_of(fields_of(request).at(1).front());
  EXPECT_EQ(attribute_texts(fields_of(resource_spans.at(1).front()), 1),
            (Texts{"service.name=1:shop"}));
  const Fields scope_spans = fields_of(resource_spans.at(2).front());
  EXPECT_EQ(fields_of(scope_spans.at(1).front()).at(1).front(), "weir");
  EXPECT_EQ(fields_of(scope_spans.at(1).front()).at(2).front(), version());
  ASSERT_EQ(scope_spans.at(2).size(), 1U);
  const Fields span = fields_of(scope_spans.at(2).front());
  EXPECT_EQ(span.at(1).front(),
            "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"sv);
  EXPECT_EQ(span.at(2).front(), "\xb7\xad\x6b\x71\x69\x20\x33\x31"sv);
  EXPECT_EQ(span.at(3).front(), "a=1");
  EXPECT_EQ(span.at(4).front(), "\0\0\0\0\0\0\0\x05"sv);
  EXPECT_EQ(span.at(5).front(), "GET /users/{id}");
  EXPECT_EQ(span.at(6).front(), "2") << "the kind";
  EXPECT_EQ(span.at(7).front(), "1700000000000000001");
  EXPECT_EQ(span.at(8).front(), "1700000000000500002");
  EXPECT_EQ(attribute_texts(span, 9),
            (Texts{"text=1:\xef\xbf\xbdx", "truth=2:1", "int=3:-1", "real=4:4609434218613702656"}));
  EXPECT_EQ(span.at(10).front(), "1");
  const Fields event = fields_of(span.at(11).front());
  EXPECT_EQ(event.at(1).front(), "1700000000000000100");
  EXPECT_EQ(event.at(2).front(), "retry");
  EXPECT_EQ(attribute_texts(event, 3), (Texts{"n=3:2"}));
  EXPECT_EQ(span.at(12).front(), "3");
  const Fields status = fields_of(span.at(15).front());
  EXPECT_EQ(status.at(2).front(), "timed out");
  EXPECT_EQ(status.at(3).front(), "2");
  EXPECT_EQ(span.at(16).front(), std::to_string(0x301)) << "sampled, and a remote parent";
}

TEST(Otlp, WritesSpansInJson) {
  const std::string expected =
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":)"
      R"({"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"weir","version":")" +
      std::string(version()) +
      R"("},"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",)"
      R"("traceState":"a=1","parentSpanId":"0000000000000005","flags":769,"name":)"
      R"("GET /users/{id}","kind":2,"startTimeUnixNano":"1700000000000000001",)"
      R"("endTimeUnixNano":"1700000000000500002","attributes":[{"key":"text","value":)"
      "{\"stringValue\":\"\xef\xbf\xbdx\"}},"
      R"({"key":"truth","value":{"boolValue":true}},{"key":"int","value":{"intValue":"-1"}},)"
      R"({"key":"real","value":{"doubleValue":1.5}}],"droppedAttributesCount":1,"events":[{)"
      R"("timeUnixNano":"1700000000000000100","name":"retry","attributes":[{"key":"n","value":)"
      R"({"intValue":"2"}}]}],"droppedEventsCount":3,"status":{"message":"timed out","code":2}})"
      "]}]}]}";
  EXPECT_EQ(request_of(sample_resource(), sample_span(), OtlpEncoding::json), expected);
}

TEST(Otlp, WritesNumbersThatJsonDoesNotHaveAsTexts) {
  SpanData span;
  span.attributes.set("a", std::numeric_limits<double>::infinity());
  span.attributes.set("b", -std::numeric_limits<double>::infinity());
  span.attributes.set("c", std::numeric_limits<double>::quiet_NaN());
  const std::string text = request_of(Attributes(), span, OtlpEncoding::json);
  EXPECT_TRUE(text.contains(R"({"doubleValue":"Infinity"})")) << text;
  EXPECT_TRUE(text.contains(R"({"doubleValue":"-Infinity"})")) << text;
  EXPECT_TRUE(text.contains(R"({"doubleValue":"NaN"})")) << text;
}

TEST(Otlp, WritesLogRecordsOfEachLoggerTogether) {
  LogData first = sample_log("http");
  LogData second = sample_log("store");
  LogData third = sample_log("http");
  third.trace_id = {};
  third.span_id = {};
  const std::string request =
      request_of(sample_resource(), {first, second, third}, OtlpEncoding::protobuf);
  const Fields resource_logs = fields_of(fields_of(request).at(1).front());
  ASSERT_EQ(resource_logs.at(2).size(), 2U);
  const Fields http = fields_of(resource_logs.at(2).front());
  EXPECT_EQ(fields_of(http.at(1).front()).at(1).front(), "http");
  ASSERT_EQ(http.at(2).size(), 2U);
  const Fields record = fields_of(http.at(2).front());
  EXPECT_EQ(record.at(1).front(), "1700000000000000007");
  EXPECT_EQ(record.at(2).front(), "9");
  EXPECT_EQ(record.at(3).front(), "info");
  EXPECT_EQ(fields_of(record.at(5).front()).at(1).front(), "request done");
  EXPECT_EQ(attribute_texts(record, 6), (Texts{"n=3:7"}));
  EXPECT_EQ(record.at(9).front().size(), 16U);
  EXPECT_EQ(record.at(10).front().size(), 8U);
  EXPECT_FALSE(fields_of(http.at(2).back()).contains(9)) << "no trace";

  const std::string json = request_of(Attributes(), {third, second}, OtlpEncoding::json);
  EXPECT_TRUE(json.starts_with(
      R"({"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{"name":"http"},"logRecords":[{)"
      R"("timeUnixNano":"1700000000000000007","observedTimeUnixNano":"1700000000000000007",)"
      R"("severityNumber":9,"severityText":"info","body":{"stringValue":"request done"},)"
      R"("attributes":[{"key":"n","value":{"intValue":"7"}}]}]},{"scope":{"name":"store"})"))
      << json;
}

ExportResponse response_of(std::string_view body, OtlpEncoding encoding = OtlpEncoding::protobuf) {
  return parse_export_response(body, encoding).value_or(ExportResponse{999, "malformed"});
}

TEST(Otlp, CountsTheItemsOfARequestAndForgetsThem) {
  for (const OtlpEncoding encoding : {OtlpEncoding::protobuf, OtlpEncoding::json}) {
    OtlpRequest request(OtlpRequest::Signal::spans, encoding);
    const std::string empty = request.body(sample_resource());
    for (int count = 0; count < 3; ++count) request.add(sample_span());
    EXPECT_EQ(request.count(), 3U);
    EXPECT_GT(request.bytes(), 300U);
    EXPECT_GE(request.body(sample_resource()).size(), empty.size() + request.bytes());
    request.clear();
    EXPECT_EQ(request.count() + request.bytes(), 0U);
    EXPECT_EQ(request.body(sample_resource()), empty);
  }
}

TEST(Otlp, ReadsAPartialSuccess) {
  EXPECT_EQ(response_of("").rejected, 0U);
  EXPECT_EQ(response_of("\x0a\x00"sv).rejected, 0U);
  const auto partial = response_of("\x0a\x08\x08\xac\x02\x12\x03why\x1a\x01z"sv.substr(0, 10));
  EXPECT_EQ(partial.rejected, 300U);
  EXPECT_EQ(partial.message, "why");
  EXPECT_EQ(response_of("\x12\x01x\x18\x05\x29"
                        "12345678\x35"
                        "1234\x0a\x02\x08\x01"sv)
                .rejected,
            1U)
      << "unknown fields of all types";
  const auto in_json = [](std::string_view body) { return response_of(body, OtlpEncoding::json); };
  EXPECT_EQ(in_json("").rejected, 0U);
  EXPECT_EQ(in_json("{}").rejected, 0U);
  EXPECT_EQ(
      in_json(R"({"partialSuccess":{"rejectedSpans":"7","errorMessage":"why","x":[1]}})").rejected,
      7U);
  EXPECT_EQ(in_json(R"({"partialSuccess":{"rejectedLogRecords":8}})").rejected, 8U);
  EXPECT_EQ(in_json(R"({"partialSuccess":{"rejectedSpans":"-8"}})").rejected, 0U);
}

TEST(Otlp, RefusesMalformedResponses) {
  for (const std::string_view body :
       {"\x0a"sv, "\x0a\x05\x08"sv, "\x0a\x01\x08"sv, "\x00"sv, "\x0b"sv, "\x09\x01"sv,
        "\x0d\x01"sv, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, "\x0a\x02\x12\x05"sv}) {
    EXPECT_FALSE(parse_export_response(body, OtlpEncoding::protobuf));
  }
  EXPECT_FALSE(parse_export_response("{", OtlpEncoding::json));
  EXPECT_FALSE(parse_export_response("[]", OtlpEncoding::json));
}

}  // namespace
}  // namespace weir::telemetry::otlp_test
