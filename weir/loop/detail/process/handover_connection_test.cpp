// Tests of the encoding of hot restart messages: round trips, and rejection of everything else.
#include "weir/loop/detail/process/handover_connection.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace weir::loop::handover_connection_test {
namespace {

using Kind = HandoverMessage::Kind;
using Use = HandoverMessage::Use;

std::vector<HandoverMessage> every_message() {
  std::vector<HandoverMessage> all;
  all.push_back({.kind = Kind::request, .text = "orders"});
  all.push_back({.kind = Kind::request, .text = ""});
  all.push_back({.kind = Kind::offer,
                 .sockets = {{Use::listening, false, "[::]:80"},
                             {Use::listening, true, "unix:/run/a.sock"},
                             {Use::rendezvous, false, ""}}});
  all.push_back({.kind = Kind::offer, .sockets = {}, .last = false});
  all.push_back({.kind = Kind::offer, .state = std::string("\0\xff secret", 9)});
  all.push_back({.kind = Kind::reject, .text = std::string(255, '~')});
  for (const Kind kind : {Kind::ready, Kind::transferred, Kind::stopped, Kind::received})
    all.push_back({.kind = kind});
  return all;
}

TEST(HandoverMessage, EncodedMessagesAreDecodedUnchanged) {
  for (const HandoverMessage& each : every_message()) {
    const auto read = decode_handover(encode(each));
    ASSERT_TRUE(read) << static_cast<int>(each.kind);
    EXPECT_EQ(*read, each);
  }
}

TEST(HandoverMessage, RejectsTruncatedMessagesAndTrailingBytes) {
  for (const HandoverMessage& each : every_message()) {
    std::vector<std::byte> bytes = encode(each);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(decode_handover(Bytes(bytes).first(size)).error(), Errc::bad_input) << size;
    }
    bytes.push_back(std::byte{0});
    EXPECT_EQ(decode_handover(bytes).error(), Errc::bad_input);
  }
}

TEST(HandoverMessage, DistinguishesAnotherVersionFromInvalidBytes) {
  std::vector<std::byte> bytes = encode({.kind = Kind::ready});
  bytes[4] = std::byte{HandoverMessage::version + 1};
  EXPECT_EQ(decode_handover(bytes).error(), Errc::unsupported);
  EXPECT_EQ(decode_handover(to_bytes("GET / HTTP/1.1\r\n\r\n")).error(), Errc::bad_input);
}

TEST(HandoverMessage, RejectsUnknownValuesAndUnprintableTexts) {
  std::vector<std::byte> kind = encode({.kind = Kind::ready});
  for (const int wrong : {0, 8, 255}) {
    kind[5] = static_cast<std::byte>(wrong);
    EXPECT_EQ(decode_handover(kind).error(), Errc::bad_input) << wrong;
  }
  std::vector<std::byte> text = encode({.kind = Kind::reject, .text = "why"});
  text.back() = std::byte{'\n'};
  EXPECT_EQ(decode_handover(text).error(), Errc::bad_input);
  std::vector<std::byte> use =
      encode({.kind = Kind::offer, .sockets = {{Use::rendezvous, false, "x"}}});
  use[9] = std::byte{3};
  EXPECT_EQ(decode_handover(use).error(), Errc::bad_input);
}

TEST(HandoverMessage, TextsAreCutAndMadePrintable) {
  EXPECT_EQ(handover_text("a\nb\x80"), "a?b?");
  EXPECT_EQ(handover_text(std::string(300, 'x')).size(), HandoverMessage::text_bytes_max);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = to_bytes(text);
  return {bytes.begin(), bytes.end()};
}

// Processes of different builds exchange these bytes.
TEST(HandoverMessage, HasADocumentedEncoding) {
  using namespace std::string_view_literals;
  EXPECT_EQ(encode({.kind = Kind::request, .text = "shop"}), bytes_of("WEIR\3\1\4\0shop"sv));
  EXPECT_EQ(encode({.kind = Kind::offer,
                    .sockets = {{Use::listening, true, "ab"}, {Use::rendezvous, false, ""}},
                    .last = false}),
            bytes_of("WEIR\3\2\0\2\0\1\1\2\0ab\2\0\0\0\0\0"sv));
  EXPECT_EQ(encode({.kind = Kind::offer}), bytes_of("WEIR\3\2\1\0\0\0\0"sv));
  EXPECT_EQ(encode({.kind = Kind::offer, .state = "abc"}), bytes_of("WEIR\3\2\1\0\0\3\0abc"sv));
  EXPECT_EQ(encode({.kind = Kind::reject, .text = ""}), bytes_of("WEIR\3\3\0\0"sv));
  EXPECT_EQ(encode({.kind = Kind::ready}), bytes_of("WEIR\3\4"sv));
  EXPECT_EQ(encode({.kind = Kind::transferred}), bytes_of("WEIR\3\5"sv));
  EXPECT_EQ(encode({.kind = Kind::stopped}), bytes_of("WEIR\3\6"sv));
  EXPECT_EQ(HandoverMessage::bytes_max, 65'536U);
  HandoverMessage many{.kind = Kind::offer};
  many.sockets.resize(258);
  const auto encoded = encode(many);
  EXPECT_EQ(encoded[7], std::byte{2}) << "numbers are little-endian";
  EXPECT_EQ(encoded[8], std::byte{1});
  EXPECT_EQ(decode_handover(encoded)->sockets.size(), 258U);
}

TEST(HandoverMessage, RejectsTextsThatAreTooLong) {
  std::vector<std::byte> bytes = bytes_of("WEIR\3\3");
  bytes.push_back(std::byte{0});
  bytes.push_back(std::byte{1});
  bytes.insert(bytes.end(), 256, std::byte{'x'});
  EXPECT_EQ(decode_handover(bytes).error(), Errc::bad_input);
  bytes[6] = std::byte{255};
  bytes[7] = std::byte{0};
  bytes.pop_back();
  ASSERT_TRUE(decode_handover(bytes));
  EXPECT_EQ(decode_handover(bytes)->text, std::string(255, 'x'));
}

TEST(HandoverMessage, RejectsFlagsThatAreNeitherTrueNorFalse) {
  const auto encoded = encode({.kind = Kind::offer, .sockets = {{Use::listening, false, "x"}}});
  for (const std::size_t flag : {6U, 10U}) {
    std::vector<std::byte> bytes = encoded;
    for (const int valid : {0, 1}) {
      bytes[flag] = static_cast<std::byte>(valid);
      EXPECT_TRUE(decode_handover(bytes)) << flag;
    }
    for (const int wrong : {2, 255}) {
      bytes[flag] = static_cast<std::byte>(wrong);
      EXPECT_EQ(decode_handover(bytes).error(), Errc::bad_input) << flag;
    }
  }
  for (const int wrong : {0, 3, 255}) {
    std::vector<std::byte> bytes = encoded;
    bytes[9] = static_cast<std::byte>(wrong);
    EXPECT_EQ(decode_handover(bytes).error(), Errc::bad_input) << "no use of a socket";
  }
  std::vector<std::byte> two = encode(
      {.kind = Kind::offer, .sockets = {{Use::listening, false, ""}, {Use::listening, false, ""}}});
  two[9] = std::byte{3};
  EXPECT_EQ(decode_handover(two).error(), Errc::bad_input) << "the first of two";
}

TEST(HandoverMessage, PrintableTextGoesFromSpaceToTilde) {
  EXPECT_EQ(handover_text(" ~\x1f\x7f"), " ~??");
  EXPECT_EQ(handover_text(std::string(255, 'x') + "y"), std::string(255, 'x'));
  for (const char valid : {' ', '~'}) {
    EXPECT_TRUE(decode_handover(encode({.kind = Kind::reject, .text = std::string(1, valid)})));
  }
  for (const char wrong : {'\x1f', '\x7f'}) {
    std::vector<std::byte> bytes = encode({.kind = Kind::reject, .text = "x"});
    bytes.back() = static_cast<std::byte>(wrong);
    EXPECT_EQ(decode_handover(bytes).error(), Errc::bad_input);
  }
}

TEST(HandoverMessage, IsDescribedForLogLines) {
  using ReceiveResult = HandoverConnection::ReceiveResult;
  const HandoverMessage rejection{.kind = Kind::reject, .text = "why"};
  EXPECT_EQ(describe(ReceiveResult::message, rejection), "rejected: why");
  EXPECT_EQ(describe(ReceiveResult::message, {.kind = Kind::ready}), "unexpected message");
  EXPECT_EQ(describe(ReceiveResult::timed_out, rejection), "no answer in time");
  EXPECT_EQ(describe(ReceiveResult::closed, rejection), "connection closed");
  EXPECT_EQ(describe(ReceiveResult::version_mismatch, rejection), "other protocol version");
  EXPECT_EQ(describe(ReceiveResult::invalid, rejection), "invalid message or missing descriptors");
}

TEST(HandoverMessage, RandomBytesAreRejectedOrDecodedExactly) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<HandoverMessage> all = every_message();
    std::vector<std::byte> bytes = encode(all[random() % all.size()]);
    for (unsigned changes = random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    bytes.resize(random() % 2 == 0 ? bytes.size() : random() % (bytes.size() + 1));
    // Each message has exactly one encoding.
    if (const auto read = decode_handover(bytes)) {
      EXPECT_EQ(encode(*read), bytes);
    }
  }
}

}  // namespace
}  // namespace weir::loop::handover_connection_test
