#include "weir/http/ws/detail/deflate.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "weir/http/ws/detail/extension.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::deflate_test {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t whole = std::numeric_limits<std::size_t>::max();

/// Two ends of connections, without frames.
class WsDeflateTest : public LoopTest {
 protected:
  void SetUp() override {
    if (!can_deflate({})) GTEST_SKIP() << "this build has no zlib";
  }
  const ScopedBlockPool blocks_{loop_->blocks()};

  WsDeflate make(WsRole role, const WebSocketDeflate& agreed) { return {*loop_, role, agreed, {}}; }
  void end_turn() { loop_->turn(platform_.now()); }
  /// Compresses a message in slices of `step` bytes.
  static std::string compressed(WsDeflate& by, std::string_view message,
                                std::size_t step = WsDeflate::slice_max) {
    std::string out;
    do {
      const std::string_view slice = message.substr(0, step);
      message.remove_prefix(slice.size());
      std::string room(WsDeflate::room_for(slice.size()), '\0');
      auto* const to = reinterpret_cast<std::byte*>(room.data());
      out.append(room, 0, by.compress(to_bytes(slice), message.empty(), {to, room.size()}));
    } while (!message.empty());
    return out;
  }
  /// Decompresses a message whose parts have `step` bytes. Returns the message, or "<code>".
  std::string decompressed(WsDeflate& by, std::string_view input, bool is_text = false,
                           std::size_t step = whole, std::size_t room = whole,
                           std::uint64_t bytes_max = unlimited) {
    std::string message;
    bool begins = true;
    do {
      const std::string_view bytes = input.substr(0, step);
      input.remove_prefix(bytes.size());
      WsEvent part{.kind = WsEvent::Kind::message,
                   .is_text = is_text,
                   .begins = begins,
                   .ends = input.empty(),
                   .compressed = true,
                   .bytes = to_bytes(bytes)};
      begins = false;
      for (bool complete = false; !complete;) {
        Buffer out;
        const WsDeflate::Step done = by.decompress(part, bytes_max, room, out);
        if (done.failure) return "<" + std::to_string(static_cast<int>(*done.failure)) + ">";
        EXPECT_LE(out.size(), room);
        EXPECT_TRUE(done.complete || out.size() == room || by.turn_is_used());
        if (!done.complete && by.turn_is_used()) end_turn();
        message += out.text();
        complete = done.complete;
      }
    } while (!input.empty());
    return message;
  }
};

constexpr WebSocketDeflate contexts{};
constexpr WebSocketDeflate no_contexts{{false, 15}, {false, 15}};

std::string words(std::size_t size) {
  std::string text;
  std::mt19937 random(7);
  while (text.size() < size) text += "word" + std::to_string(random() % 500) + " ";
  text.resize(size);
  return text;
}

// RFC 7692 §7.2.3.

TEST_F(WsDeflateTest, ReadsTheExamplesOfTheRfc) {
  using namespace std::string_view_literals;
  WsDeflate server = make(WsRole::server, contexts);
  EXPECT_EQ(decompressed(server, "\xf2\x48\xcd\xc9\xc9\x07\x00"sv, true), "Hello");
  EXPECT_EQ(decompressed(server, "\xf2\x00\x11\x00\x00"sv, true), "Hello") << "by the context";
  EXPECT_EQ(decompressed(server, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"sv, true), "Hello");
  EXPECT_EQ(decompressed(server, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"sv, true), "Hello")
      << "a final block";
  EXPECT_EQ(decompressed(server, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"sv, true),
            "Hello")
      << "two blocks";
  EXPECT_EQ(decompressed(server, "\x00"sv, true), "");
}

TEST_F(WsDeflateTest, WritesTheExamplesOfTheRfc) {
  using namespace std::string_view_literals;
  WsDeflate server = make(WsRole::server, contexts);
  EXPECT_EQ(compressed(server, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"sv);
  EXPECT_EQ(compressed(server, "Hello"), "\xf2\x00\x11\x00\x00"sv);
  EXPECT_EQ(compressed(server, ""), "\x00"sv);
  WsDeflate other = make(WsRole::server, no_contexts);
  for (int count = 0; count < 3; ++count) {
    EXPECT_EQ(compressed(other, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"sv);
  }
}

TEST_F(WsDeflateTest, ReturnsMessagesOfAllShapes) {
  std::string noise;
  std::mt19937 random(3);
  while (noise.size() < 70'000) noise += static_cast<char>(random());
  for (const WebSocketDeflate& agreed :
       {contexts, no_contexts, WebSocketDeflate{{true, 9}, {true, 10}},
        WebSocketDeflate{{false, 9}, {false, 12}}}) {
    for (const WsRole sender : {WsRole::server, WsRole::client}) {
      WsDeflate from = make(sender, agreed);
      WsDeflate to = make(sender == WsRole::server ? WsRole::client : WsRole::server, agreed);
      for (const std::string& message :
           {words(5), std::string(), words(300), words(100'000), noise, words(300)}) {
        for (const std::size_t step : {whole, std::size_t{1}, std::size_t{1'000}}) {
          if (step == 1 && message.size() > 1'000) continue;
          const std::string data = compressed(from, message, 32'000);
          ASSERT_TRUE(decompressed(to, data, false, step) == message) << step;
          const std::string again = compressed(from, message, 1'000);
          ASSERT_TRUE(decompressed(to, again, false, step, 1'000) == message) << step;
        }
      }
    }
  }
}

TEST_F(WsDeflateTest, ComparesWithAndWithoutContext) {
  WsDeflate with = make(WsRole::server, contexts);
  WsDeflate without = make(WsRole::server, no_contexts);
  const std::string message = words(2'000);
  EXPECT_EQ(compressed(with, message), compressed(without, message));
  EXPECT_LT(compressed(with, message).size(), 100U);
  EXPECT_GT(compressed(without, message).size(), 500U);
}

TEST_F(WsDeflateTest, LimitsABombWhileItIsDecompressed) {
  WsDeflate from = make(WsRole::client, no_contexts);
  const std::string bomb = compressed(from, std::string(10'000'000, 'x'));
  EXPECT_LT(bomb.size(), 100'000U);
  WsDeflate to = make(WsRole::server, no_contexts);
  WsEvent part{.begins = true, .ends = true, .compressed = true, .bytes = to_bytes(bomb)};
  Buffer out;
  const WsDeflate::Step step = to.decompress(part, 100'000, whole, out);
  EXPECT_EQ(step.failure, WebSocketCloseCode::message_too_big);
  EXPECT_LE(out.size(), 100'000U);
  for (const std::size_t size : {0U, 1U, 99'999U, 100'000U, 100'001U}) {
    WsDeflate next = make(WsRole::server, no_contexts);
    const std::string message(size, 'y');
    EXPECT_EQ(
        decompressed(next, compressed(from, message), false, whole, whole, 100'000) == message,
        size <= 100'000)
        << size;
  }
}

// An empty final block has two bytes and no output (RFC 7692 §7.2.3.4).
TEST_F(WsDeflateTest, BoundsTheWorkOfATurnByItsInput) {
  using compression::TurnWork;
  WsDeflate to = make(WsRole::server, contexts);
  EXPECT_EQ(decompressed(to, compressed(to, std::string(40'000, 'a'))).size(), 40'000U);
  end_turn();
  std::string blocks;
  for (int count = 0; count < 20'000; ++count) blocks.append("\x03\x00", 2);
  std::string stored;
  for (int count = 0; count < 8'000; ++count) stored.append("\x00\x00\x00\xff\xff", 5);
  // The begin of the block whose other bytes are the tail.
  for (const std::string& message : {blocks + '\0', stored + '\0'}) {
    WsEvent part{.begins = true, .ends = true, .compressed = true, .bytes = to_bytes(message)};
    Buffer out;
    std::size_t turns = 0;
    for (bool complete = false; !complete; ++turns) {
      const std::size_t before = part.bytes.size();
      const WsDeflate::Step step = to.decompress(part, unlimited, whole, out);
      EXPECT_FALSE(step.failure);
      EXPECT_LE(before - part.bytes.size(), TurnWork::input_max);
      complete = step.complete;
      EXPECT_TRUE(complete || to.turn_is_used());
      EXPECT_TRUE(complete || !to.decompress(part, unlimited, whole, out).complete)
          << "nothing more in this turn";
      end_turn();
    }
    EXPECT_GE(turns, message.size() / TurnWork::input_max);
    EXPECT_TRUE(out.empty());
  }
  EXPECT_EQ(decompressed(to, compressed(to, "after")), "after") << "by the context";
}

// Small messages that each become large ones share the work of a turn.
TEST_F(WsDeflateTest, BoundsTheWorkOfATurnOverAllMessages) {
  WsDeflate from = make(WsRole::client, no_contexts);
  WsDeflate to = make(WsRole::server, no_contexts);
  const std::string bomb = compressed(from, std::string(100'000, 'x'));
  end_turn();
  std::size_t produced = 0;
  for (int count = 0; count < 10; ++count) {
    WsEvent part{.begins = true, .ends = true, .compressed = true, .bytes = to_bytes(bomb)};
    Buffer out;
    const bool complete = to.decompress(part, unlimited, whole, out).complete;
    produced += out.size();
    if (!complete) break;
  }
  EXPECT_EQ(produced, compression::TurnWork::output_max);
}

TEST_F(WsDeflateTest, RejectsInvalidData) {
  using namespace std::string_view_literals;
  for (const std::string_view bad :
       {"\xff\xff\xff\xff"sv, "\x06\x00"sv, "\x00\x05\x00\xfa\xfe"sv, "Hello"sv}) {
    WsDeflate to = make(WsRole::server, contexts);
    EXPECT_EQ(decompressed(to, bad), "<1007>");
  }
  // It refers to bytes before the first message.
  WsDeflate to = make(WsRole::server, contexts);
  EXPECT_EQ(decompressed(to, "\xf2\x00\x11\x00\x00"sv), "<1007>");
}

TEST_F(WsDeflateTest, ForgetsMessagesWithoutAContext) {
  using namespace std::string_view_literals;
  WsDeflate to = make(WsRole::server, no_contexts);
  EXPECT_EQ(decompressed(to, "\xf2\x48\xcd\xc9\xc9\x07\x00"sv), "Hello");
  EXPECT_EQ(decompressed(to, "\xf2\x00\x11\x00\x00"sv), "<1007>");
}

TEST_F(WsDeflateTest, ChecksTextWhileItArrives) {
  WsDeflate from = make(WsRole::client, no_contexts);
  const auto check = [&](std::string_view message, std::size_t room) {
    WsDeflate to = make(WsRole::server, no_contexts);
    return decompressed(to, compressed(from, message), true, whole, room);
  };
  EXPECT_EQ(check("a\xe2\x82\xac", 1), "a\xe2\x82\xac") << "a character may be split";
  EXPECT_EQ(check("a\xe2\x82", whole), "<1007>") << "the text ends within a character";
  EXPECT_EQ(check("\xed\xa0\x80", whole), "<1007>");
  WsDeflate to = make(WsRole::server, no_contexts);
  EXPECT_EQ(decompressed(to, compressed(from, "\xff"), false), "\xff") << "binary";
}

TEST_F(WsDeflateTest, DecidesWhichMessagesAreCompressed) {
  WsDeflate server(*loop_, WsRole::server, no_contexts, {.bytes_min = 10});
  const std::string ten(10, 'x');
  const auto message = [](std::string_view text, bool ends) {
    return WebSocketMessage{.is_text = true, .ends = ends, .bytes = to_bytes(text)};
  };
  EXPECT_TRUE(server.compresses(message(ten, true), false));
  EXPECT_FALSE(server.compresses(message("short", true), false));
  EXPECT_FALSE(server.compresses(message(ten, true), true)) << "as its first piece";
  EXPECT_TRUE(server.compresses(message("short", false), false)) << "the size is not known";
  EXPECT_TRUE(server.compresses(message("", true), true));
  WsDeflate client(*loop_, WsRole::client, {{true, 15}, {true, 8}}, {.bytes_min = 10});
  EXPECT_FALSE(client.compresses(message(ten, true), false)) << "zlib has no such window";
}

TEST_F(WsDeflateTest, SharesDecompressorsOfACore) {
  WsDeflateCore& core = WsDeflateCore::of(*loop_);
  WsDeflate from = make(WsRole::client, no_contexts);
  const std::string data = compressed(from, "hello");
  {
    WsDeflate to = make(WsRole::server, no_contexts);
    WsEvent part{.begins = true, .compressed = true, .bytes = to_bytes(data).first(3)};
    Buffer out;
    EXPECT_FALSE(to.decompress(part, unlimited, whole, out).failure);
  }
  WsDeflate to = make(WsRole::server, no_contexts);
  EXPECT_EQ(decompressed(to, data), "hello") << "after a message that did not end";
  EXPECT_EQ(core.decompressed.value(), 1U);
  EXPECT_EQ(core.rejected.value(), 0U);
}

}  // namespace
}  // namespace weir::http::deflate_test
