// Tests the encoding of log records.
#include "weir/log/detail/record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace weir {
namespace {

const WallTime noon{std::chrono::seconds(1'000'000'000)};

/// A decoded record together with its bytes.
struct Read {
  explicit Read(Bytes from) : bytes(from.begin(), from.end()) { read_log_record(bytes, record); }
  std::vector<std::byte> bytes;
  LogRecord record;
};

TEST(LogRecord, DecodesWhatWasEncoded) {
  LogRecordWriter writer(noon, LogLevel::warning, 7, "http", "a message");
  writer.add({"signed", std::int64_t{-5}});
  writer.add({"unsigned", std::numeric_limits<std::uint64_t>::max()});
  writer.add({"real", 0.25});
  writer.add({"truth", true});
  writer.add({"text", std::string_view("some text")});
  writer.add({"", std::string_view()});
  const Read read(writer.finish());
  EXPECT_EQ(log_record_size(read.bytes), read.bytes.size());
  EXPECT_EQ(log_record_time(read.bytes), noon);
  EXPECT_EQ(read.record.time, noon);
  EXPECT_EQ(read.record.level, LogLevel::warning);
  EXPECT_EQ(read.record.core, 7u);
  EXPECT_EQ(read.record.logger, "http");
  EXPECT_EQ(read.record.message, "a message");
  EXPECT_FALSE(read.record.truncated);
  const auto& fields = read.record.fields;
  ASSERT_EQ(fields.size(), 6u);
  EXPECT_EQ(fields[0].key, "signed");
  EXPECT_EQ(fields[0].value, LogValue(std::int64_t{-5}));
  EXPECT_EQ(fields[1].value, LogValue(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(fields[2].value, LogValue(0.25));
  EXPECT_EQ(fields[3].value, LogValue(true));
  EXPECT_EQ(fields[4].value, LogValue(std::string_view("some text")));
  EXPECT_EQ(fields[5].key, "");
}

TEST(LogRecord, CutsWhatDoesNotFit) {
  LogRecordWriter writer(noon, LogLevel::info, 0, std::string(500, 'n'), std::string(5000, 'm'));
  writer.add({std::string(500, 'k'), std::string_view("value")});
  const std::string text(10'000, 't');
  writer.add({"text", std::string_view(text)});
  writer.add({"late", std::int64_t{1}});
  const Read read(writer.finish());
  EXPECT_EQ(read.bytes.size(), LogRecord::bytes_max);
  EXPECT_TRUE(read.record.truncated);
  EXPECT_EQ(read.record.logger, std::string(128, 'n'));
  EXPECT_EQ(read.record.message, std::string(1024, 'm'));
  ASSERT_EQ(read.record.fields.size(), 2u);
  EXPECT_EQ(read.record.fields[0].key, std::string(128, 'k'));
  const auto cut = std::get<std::string_view>(read.record.fields[1].value);
  EXPECT_TRUE(text.starts_with(cut) && cut.size() > 2000) << cut.size();
}

TEST(LogRecord, ACutDoesNotSplitCharacters) {
  std::string message;
  while (message.size() < 2000) message += "\xE2\x82\xAC";  // three bytes
  LogRecordWriter writer(noon, LogLevel::info, 0, "", message);
  const Read read(writer.finish());
  EXPECT_EQ(read.record.message.size(), 1023u);
}

TEST(LogRecord, FieldsAreEncodedOnce) {
  const std::array first{LogField("a", std::int64_t{1})};
  const std::array second{LogField("b", std::string_view("x")), LogField("c", false)};
  const std::string one = LogRecordWriter::encode("", first);
  const std::string both = LogRecordWriter::encode(one, second);
  LogRecordWriter writer(noon, LogLevel::info, 0, "n", "m");
  writer.add_encoded(both);
  writer.add({"d", 1.0});
  const Read read(writer.finish());
  std::string keys;
  for (const LogField& each : read.record.fields) keys += each.key;
  EXPECT_EQ(keys, "abcd");
  const std::string much(3000, 'x');
  const std::array large{LogField("large", std::string_view(much))};
  EXPECT_EQ(LogRecordWriter::encode(one, large), one);
}

TEST(LogRecord, AFullRecordOmitsEncodedFields) {
  const std::array field{LogField("a", std::int64_t{1})};
  const std::string gathered = LogRecordWriter::encode("", field);
  LogRecordWriter writer(noon, LogLevel::info, 0, "n", "m");
  const std::string text(LogRecord::bytes_max, 'x');
  writer.add({"text", std::string_view(text)});
  writer.add_encoded(gathered);
  const Read read(writer.finish());
  EXPECT_TRUE(read.record.truncated);
  EXPECT_EQ(read.record.fields.size(), 1u);
}

}  // namespace
}  // namespace weir
