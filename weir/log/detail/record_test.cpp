// Tests the encoding of log records.
#include "weir/log/detail/record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::record_test {
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

TEST(LogRecord, CutsOnlyWhatIsLongerThanTheLimits) {
  for (const std::size_t more : {0U, 1U}) {
    LogRecordWriter writer(noon, LogLevel::info, 0, std::string(128 + more, 'n'),
                           std::string(1024 + more, 'm'));
    const std::string key(128 + more, 'k');
    writer.add({key, true});
    const Read read(writer.finish());
    EXPECT_EQ(read.record.logger, std::string(128, 'n'));
    EXPECT_EQ(read.record.message, std::string(1024, 'm'));
    EXPECT_EQ(read.record.fields.at(0).key, std::string(128, 'k'));
    EXPECT_EQ(read.record.truncated, more != 0) << "by the message";
  }
}

TEST(LogRecord, IsNotMarkedAsTruncatedByALongName) {
  LogRecordWriter writer(noon, LogLevel::info, 0, std::string(129, 'n'), std::string(1024, 'm'));
  const std::string key(129, 'k');
  writer.add({key, std::string_view("value")});
  const Read read(writer.finish());
  EXPECT_FALSE(read.record.truncated);
  EXPECT_EQ(read.record.logger, std::string(128, 'n'));
  EXPECT_EQ(read.record.fields.at(0).key, std::string(128, 'k'));
  EXPECT_EQ(read.record.fields[0].value, LogValue(std::string_view("value")));
}

/// A record with a first text field that leaves exactly `left` bytes.
class NearlyFull {
 public:
  explicit NearlyFull(std::size_t left)
      : text_(LogRecord::bytes_max - left - 24 - 1 - 1 - 4 - 1, 't'),
        writer(noon, LogLevel::info, 0, "n", "m") {
    writer.add({"t", std::string_view(text_)});
  }
  /// Returns the record without the text field.
  Read finish() {
    Read read(writer.finish());
    EXPECT_EQ(read.record.fields.at(0).value, LogValue(std::string_view(text_)));
    read.record.fields.erase(read.record.fields.begin());
    return read;
  }

 private:
  std::string text_;

 public:
  LogRecordWriter writer;
};

// A field has a header of 4 bytes, its key and its value.
TEST(LogRecord, AddsAFieldThatFitsExactly) {
  for (const std::size_t missing : {0U, 1U}) {
    NearlyFull number(4 + 1 + 8 - missing);
    number.writer.add({"k", std::int64_t{5}});
    const Read with_number = number.finish();
    EXPECT_EQ(with_number.record.fields.size(), 1 - missing);
    EXPECT_EQ(with_number.record.truncated, missing != 0);
    EXPECT_EQ(with_number.bytes.size(), LogRecord::bytes_max - missing * (4 + 1 + 7));

    NearlyFull text(4 + 1 + 3 - missing);
    text.writer.add({"k", std::string_view("abc")});
    const Read with_text = text.finish();
    ASSERT_EQ(with_text.record.fields.size(), 1U);
    EXPECT_EQ(with_text.record.fields[0].value,
              LogValue(std::string_view("abc").substr(0, 3 - missing)));
    EXPECT_EQ(with_text.record.truncated, missing != 0);

    NearlyFull empty(4 + 1 - missing);
    empty.writer.add({"k", std::string_view()});
    const Read with_empty = empty.finish();
    EXPECT_EQ(with_empty.record.fields.size(), 1 - missing);
    EXPECT_EQ(with_empty.record.truncated, missing != 0);

    const std::array field{LogField("k", true)};
    const std::string encoded = LogRecordWriter::encode("", field);
    NearlyFull bound(encoded.size() - missing);
    bound.writer.add_encoded(encoded);
    const Read with_bound = bound.finish();
    EXPECT_EQ(with_bound.record.fields.size(), 1 - missing);
    EXPECT_EQ(with_bound.record.truncated, missing != 0);
  }
}

TEST(LogRecord, StaysTruncatedIfLaterFieldsFit) {
  LogRecordWriter cut(noon, LogLevel::info, 0, "n", std::string(1025, 'm'));
  cut.add({"k", std::string_view("short")});
  cut.add({"n", std::int64_t{1}});
  EXPECT_TRUE(Read(cut.finish()).record.truncated);
}

TEST(LogRecord, ACutDoesNotSplitCharacters) {
  std::string message;
  while (message.size() < 2000) message += "\xE2\x82\xAC";  // three bytes
  LogRecordWriter writer(noon, LogLevel::info, 0, "", message);
  const Read read(writer.finish());
  EXPECT_EQ(read.record.message.size(), 1023u);
  // The second byte of this character is 0xA5, and byte 1024 of the message is one of these.
  std::string odd = "x";
  while (odd.size() < 2000) odd += "\xC3\xA5";
  LogRecordWriter of_two(noon, LogLevel::info, 0, "", odd);
  EXPECT_EQ(Read(of_two.finish()).record.message, odd.substr(0, 1023));
}

TEST(LogRecord, CutsATextWithoutCharactersToNothing) {
  for (const char byte : {'\x80', '\xBF'}) {
    const std::string text(5000, byte);  // parts of characters only
    LogRecordWriter writer(noon, LogLevel::info, 0, text, text);
    writer.add({text, std::string_view(text)});
    const Read read(writer.finish());
    EXPECT_EQ(read.record.logger, "");
    EXPECT_EQ(read.record.message, "");
    EXPECT_EQ(read.record.fields.at(0).key, "");
    EXPECT_EQ(read.record.fields[0].value, LogValue(std::string_view()));
    EXPECT_TRUE(read.record.truncated);
  }
}

TEST(LogRecord, StartsAsAnInfoRecordOfNoCore) {
  const LogRecord record;
  EXPECT_EQ(record.level, LogLevel::info);
  EXPECT_EQ(record.core, LogRecord::no_core);
  EXPECT_FALSE(record.truncated);
}

TEST(LogLevel, HasANameThatIsParsed) {
  const std::array<std::string_view, 6> names{"trace", "debug", "info", "warning", "error", "off"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto level = static_cast<LogLevel>(i);
    EXPECT_EQ(name_of(level), names[i]);
    EXPECT_EQ(parse_log_level(names[i]), level);
  }
  EXPECT_EQ(parse_log_level(""), std::nullopt);
  EXPECT_EQ(parse_log_level("Info"), std::nullopt);
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

// The header of a field has 4 bytes.
TEST(LogRecord, EncodesFieldsUpToATotalOfTwoKibibytes) {
  const std::string text(2048 - 2 * 5 - 1, 'x');
  const std::array exact{LogField("a", true), LogField("b", std::string_view(text))};
  const std::string full = LogRecordWriter::encode("", exact);
  EXPECT_EQ(full.size(), 2048U);
  EXPECT_TRUE(has_log_field(full, "b"));
  const std::string longer = text + "x";
  const std::array beyond{LogField("a", true), LogField("b", std::string_view(longer)),
                          LogField("c", true)};
  const std::string cut = LogRecordWriter::encode("", beyond);
  EXPECT_EQ(cut.size(), 6U) << "the fields after the first that does not fit are left out too";
  EXPECT_TRUE(has_log_field(cut, "a"));
  const std::array more{LogField("", std::string_view())};
  EXPECT_EQ(LogRecordWriter::encode(full, more), full);
}

TEST(LogRecord, FindsAnEncodedFieldByItsWholeName) {
  const std::array fields{LogField("signed", std::int64_t{-5}), LogField("unsigned", ~0UL),
                          LogField("real", 0.25), LogField("truth", true),
                          LogField("text", std::string_view("last"))};
  const std::string encoded = LogRecordWriter::encode("", fields);
  for (const LogField& each : fields) EXPECT_TRUE(has_log_field(encoded, each.key)) << each.key;
  for (const char* const key : {"", "tex", "texts", "last", "Text"}) {
    EXPECT_FALSE(has_log_field(encoded, key)) << key;
  }
  EXPECT_FALSE(has_log_field("", "text"));
}

}  // namespace
}  // namespace weir::record_test
