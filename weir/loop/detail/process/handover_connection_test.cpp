// Tests of the encoding of hot restart messages: round trips, and rejection of everything else.
#include "weir/loop/detail/process/handover_connection.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace weir {
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
  all.push_back({.kind = Kind::reject, .text = std::string(255, '~')});
  for (const Kind kind : {Kind::ready, Kind::transferred, Kind::stopped})
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
  for (const int wrong : {0, 7, 255}) {
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
}  // namespace weir
