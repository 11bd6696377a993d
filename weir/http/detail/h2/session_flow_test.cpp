// Tests of flow control, of the order of senders, and of the output of HTTP/2 sessions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/http/detail/h2/session.hpp"
#include "weir/http/test/h2_frames.hpp"
#include "weir/http/test/h2_session_fixture.hpp"

namespace weir::http::session_flow_test {
namespace {

using namespace frames;

constexpr std::uint8_t end_headers = FrameFlag::end_headers;
constexpr std::uint8_t end_stream = FrameFlag::end_stream;

std::string post(std::uint32_t id) {
  return headers(id, "POST", end_headers);
}

/// Sends what the session allows of `size` bytes on a stream. Returns the number of bytes.
std::size_t send(SessionDriver& driver, std::uint32_t id, std::size_t size, bool ends = false) {
  const std::string body(size, 'x');
  std::size_t sent = 0;
  while (sent < size) {
    const Bytes rest = to_bytes(body).subspan(sent);
    const std::size_t taken = driver.session().send_data(driver.stream(id), rest, ends);
    if (taken == 0) break;
    sent += taken;
  }
  return sent;
}

/// Returns true if the session sends a whole response. Otherwise no byte of the response is sent.
bool send_whole(SessionDriver& driver, std::uint32_t id, std::size_t size) {
  const std::string body(size, 'x');
  const std::string before(driver.session().output().text());
  const auto write = [](char* out) { return *out = 'h', out + 1; };
  const bool sent = driver.session().send_whole(driver.stream(id), 1, write, to_bytes(body));
  const std::string_view after = driver.session().output().text();
  EXPECT_TRUE(after.starts_with(before));
  const std::size_t frames = size == 0 ? 1 : 2;
  EXPECT_EQ(after.size(), before.size() + (sent ? frames * frame_header_size + 1 + size : 0));
  EXPECT_EQ(driver.stream(id).local_ended(), sent);
  return sent;
}

/// Returns the types and sizes of complete frames.
std::string sizes_of(std::string_view bytes) {
  std::string sizes;
  while (bytes.size() >= frame_header_size) {
    const auto byte = [bytes](std::size_t at) -> std::size_t {
      return static_cast<unsigned char>(bytes[at]);
    };
    const std::size_t size = (byte(0) << 16U) + (byte(1) << 8U) + byte(2);
    sizes += std::to_string(byte(3)) + " " + std::to_string(byte(8)) + " " + std::to_string(size) +
             ((byte(4) & end_stream) != 0 ? " end\n" : "\n");
    bytes.remove_prefix(std::min(bytes.size(), frame_header_size + size));
  }
  return sizes;
}

/// Sends what the session allows of `size` bytes from their memory. Of all pieces, `written` bytes
/// are written. Returns sizes_of() the written bytes and the output behind them.
std::string send_in_place(SessionDriver& driver, std::uint32_t id, std::size_t size, bool ends,
                          std::size_t written, std::size_t sent) {
  const std::string body(size, 'x');
  std::string bytes;
  const auto write = [&](std::span<const Bytes> pieces) {
    for (const Bytes piece : pieces) bytes += to_text(piece);
    bytes.resize(std::min(bytes.size(), written));
    return bytes.size();
  };
  H2Stream& stream = driver.stream(id);
  EXPECT_EQ(driver.session().send_in_place(stream, to_bytes(body), ends, write), sent);
  const Buffer output = driver.session().take_output();
  bytes.append(output.text());
  EXPECT_FALSE(read_frames(bytes).ends_with("partial\n"));
  return sizes_of(bytes);
}

// Bodies that are sent from their own memory.

TEST(H2InPlace, SendsTheFramesOfAnyPartThatIsWritten) {
  constexpr std::size_t size = 2 * frame_payload_default + 100;
  constexpr std::size_t front = frame_header_size + 1;  // the head of the response
  constexpr std::size_t frame = frame_header_size + frame_payload_default;
  for (std::size_t written = 0; written <= front + 2 * frame + frame_header_size + 100;
       written += written % frame < 40 || written % frame > frame - 40 ? 1 : 20) {
    SCOPED_TRACE(written);
    SessionDriver driver;
    driver.handshake(setting(SettingId::initial_window_size, size));
    driver.feed(headers(1, "GET", end_headers | end_stream));
    const auto write = [](char* out) { return *out = 'h', out + 1; };
    driver.session().send_headers(driver.stream(1), 1, write, false);
    const std::size_t frames = written <= front               ? 0
                               : written <= front + frame     ? 1
                               : written <= front + 2 * frame ? 2
                                                              : 3;
    const std::size_t sent = std::min(size, frames * frame_payload_default);
    const std::string lines = send_in_place(driver, 1, size, true, written, sent);
    std::string expected = "1 1 1\n";
    for (std::size_t count = 0; count < frames; ++count) {
      expected += count == 2 ? "0 1 100 end\n" : "0 1 16384\n";
    }
    EXPECT_EQ(lines, expected);
    EXPECT_EQ(driver.stream(1).closed(), frames == 3);
    EXPECT_EQ(driver.stream(1).send_window(), static_cast<std::int32_t>(size - sent));
    EXPECT_TRUE(driver.session().output().empty());
  }
}

TEST(H2InPlace, ObeysTheWindowsAndTheStateOfTheStream) {
  constexpr std::size_t all = 100 * frame_payload_default;
  constexpr std::size_t any = std::size_t{1} << 30;
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 20'000));
  driver.feed(post(1) + post(3));
  std::string lines = send_in_place(driver, 1, all, true, any, 20'000);
  EXPECT_EQ(lines, "0 1 16384\n0 1 3616\n");
  EXPECT_EQ(send_in_place(driver, 1, all, true, any, 0), "") << "its window is used up";
  driver.feed(window_update(3, 1'000'000));
  lines = send_in_place(driver, 3, all, true, any, window_default - 20'000);
  EXPECT_TRUE(lines.ends_with("0 3 12767\n")) << lines;
  driver.feed(window_update(0, 10'000'000));
  lines = send_in_place(driver, 3, all, true, any, DataFrames::bytes_max);
  EXPECT_EQ(std::ranges::count(lines, '\n'), std::ptrdiff_t{DataFrames::frames_max});
  EXPECT_FALSE(driver.stream(3).local_ended());
  lines = send_in_place(driver, 3, 5, true, any, 5);
  EXPECT_EQ(lines, "0 3 5 end\n");
  EXPECT_EQ(send_in_place(driver, 3, 5, true, any, 0), "") << "the stream has ended";
}

TEST(H2InPlace, IsLeftToStreamsThatShareNoTurn) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 1'000'000));
  driver.feed(post(1) + post(3));
  H2Session& session = driver.session();
  session.want_send(driver.stream(1));
  session.want_send(driver.stream(3));
  EXPECT_EQ(session.allowed_in_place(driver.stream(1), 50'000), 50'000u);
  EXPECT_EQ(session.allowed_in_place(driver.stream(1), 500'000), window_default);
  session.set_priority(driver.stream(1), {.urgency = 3, .incremental = true});
  session.set_priority(driver.stream(3), {.urgency = 3, .incremental = true});
  EXPECT_EQ(session.allowed_in_place(driver.stream(1), 50'000), 0u);
  session.stop_sending(driver.stream(3));
  EXPECT_EQ(session.allowed_in_place(driver.stream(1), 50'000), 50'000u);
}

TEST(H2InPlace, CountsWrittenControlFramesAsTaken) {
  H2Limits limits;
  limits.control_bytes_max = 100;
  SessionDriver driver(limits);
  driver.handshake(setting(SettingId::initial_window_size, 1'000'000));
  driver.feed(post(1));
  const std::string ping = frame(FrameType::ping, 0, 0, "12345678");
  for (int count = 0; count < 40; ++count) {
    driver.feed(ping + ping + ping);
    send_in_place(driver, 1, 10, false, 1'000, 10);
    ASSERT_FALSE(driver.session().failed());
  }
}

// The windows of received data.

TEST(H2Windows, ReturnConsumedBytesInHalfWindows) {
  H2Limits limits;
  limits.stream_window = 65'536;
  limits.connection_window = 131'072;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(post(1) + data(1, std::string(16'384, 'x')));
  EXPECT_EQ(driver.take_sent(), "");
  driver.feed(data(1, std::string(16'383, 'x')));
  EXPECT_EQ(driver.take_sent(), "");
  driver.feed(data(1, "x"));
  EXPECT_EQ(driver.take_sent(), "window_update 1 32768\n");
  driver.feed(data(1, std::string(16'384, 'x')) + data(1, std::string(16'384, 'x')));
  EXPECT_EQ(driver.take_sent(), "window_update 0 65536\nwindow_update 1 32768\n");
}

TEST(H2Windows, HoldThePeerBackUntilBytesAreConsumed) {
  H2Limits limits;
  limits.connection_window = 200'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string quarter = data(1, std::string(16'384, 'x'));
  driver.feed(post(1) + quarter + quarter + quarter + quarter);
  EXPECT_EQ(driver.take_sent(), "");
  EXPECT_EQ(driver.stream(1).unconsumed(), 65'536u);
  driver.session().consume(driver.stream(1), 65'536);
  EXPECT_EQ(driver.take_sent(), "window_update 1 65536\n");
  driver.feed(quarter + quarter + quarter + quarter);
  EXPECT_FALSE(driver.stream(1).closed());
  driver.feed(data(1, "x"));
  EXPECT_EQ(driver.take_sent(), "reset 1 3\n");
}

TEST(H2Windows, GrowWhileABodyIsRead) {
  H2Limits limits;
  limits.stream_window = 65'536;
  limits.connection_window = 400'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string part(16'384, 'x');
  const auto upload = [&](std::uint32_t id, int parts) {
    std::string input;
    for (int count = 0; count < parts; ++count) input += data(id, part);
    driver.feed(input);
    driver.session().consume_and_grow(driver.stream(id), static_cast<std::size_t>(parts) * 16'384);
    return driver.take_sent();
  };
  driver.feed(post(1) + post(3));
  EXPECT_EQ(upload(1, 1), "") << "half of the window is left";
  EXPECT_EQ(upload(1, 3), "window_update 1 131072\n") << "twice the window";
  EXPECT_EQ(upload(1, 7), "window_update 1 245760\n") << "four times the window";
  EXPECT_EQ(upload(1, 7), "window_update 0 180224\n") << "half of the window is left";
  EXPECT_EQ(upload(3, 4), "window_update 3 68928\n") << "the first has used up the growth";
  driver.release(1);
  EXPECT_EQ(driver.take_sent(), "reset 1 8\n");
  EXPECT_EQ(upload(3, 4), "window_update 0 180224\nwindow_update 3 134464\n") << "twice the window";
  driver.length = 100'000;
  driver.feed(post(5));
  EXPECT_EQ(upload(5, 2), "window_update 5 98304\n") << "more than a window is left";
  driver.release(3);
  EXPECT_EQ(driver.take_sent(), "reset 3 8\n");
  driver.feed(post(7));
  EXPECT_EQ(upload(7, 3), "window_update 7 49152\n") << "the rest fits into the window";
}

TEST(H2Windows, OfTheConnectionAreReturnedWhileABodyStands) {
  H2Limits limits;
  limits.connection_window = 400'000;
  limits.stream_window = 300'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string part(16'384, 'x');
  const auto send = [&](std::uint32_t id, int parts) {
    std::string input;
    for (int count = 0; count < parts; ++count) input += data(id, part);
    driver.feed(input);
  };
  driver.feed(post(1) + post(3));
  send(3, 10);
  driver.session().consume(driver.stream(3), 163'840);
  EXPECT_EQ(driver.take_sent(), "window_update 3 163840\n") << "there is enough for all";
  send(1, 4);
  EXPECT_EQ(driver.take_sent(), "");
  send(1, 1);  // 163,840 bytes would be left, which wait to be returned
  EXPECT_EQ(driver.take_sent(), "window_update 0 163840\n");
  send(1, 13);  // its handler does not read
  EXPECT_FALSE(driver.session().failed());
  // The other one goes on with what is left.
  for (int count = 0; count < 50; ++count) {
    send(3, 1);
    driver.session().consume(driver.stream(3), 16'384);
    ASSERT_FALSE(driver.session().failed());
  }
}

TEST(H2Windows, BoundAllStreamsTogether) {
  H2Limits limits;
  limits.connection_window = 70'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string part(16'384, 'x');
  driver.feed(post(1) + post(3) + data(1, part) + data(3, part) + data(1, part) + data(3, part));
  driver.feed(data(3, std::string(70'000 - 65'536, 'x')));
  EXPECT_FALSE(driver.session().failed());
  driver.feed(data(3, "x"));
  EXPECT_EQ(driver.take_sent(), "goaway 3 e3\n");
}

TEST(H2Windows, CountPaddingAndReturnItAtOnce) {
  H2Limits limits;
  limits.stream_window = 512;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string padded =
      "\xC8"
      "x" +
      std::string(200, '\0');
  driver.feed(post(1) + data(1, padded, FrameFlag::padded));
  EXPECT_EQ(driver.stream(1).unconsumed(), 1u);
  EXPECT_EQ(driver.take_sent(), "");
  driver.feed(data(1, padded, FrameFlag::padded));
  EXPECT_EQ(driver.take_sent(), "window_update 1 402\n");
  driver.feed(data(1, std::string(510, 'x')));
  EXPECT_FALSE(driver.stream(1).closed());
  driver.feed(data(1, "x"));
  EXPECT_TRUE(driver.stream(1).closed());
}

TEST(H2Windows, AllowTheDefaultUntilTheSettingsAreAcknowledged) {
  H2Limits limits;
  limits.stream_window = 1'000;
  SessionDriver driver(limits);
  driver.feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings());
  driver.consumes = false;
  driver.feed(post(1) + post(3) + data(1, std::string(2'000, 'x')));
  EXPECT_FALSE(driver.stream(1).closed());
  driver.feed(frame(FrameType::settings, FrameFlag::ack, 0) + data(3, std::string(1'000, 'x')));
  EXPECT_FALSE(driver.stream(3).closed());
  driver.take_sent();
  driver.feed(data(3, "x") + data(1, "x"));
  EXPECT_EQ(driver.take_sent(), "reset 3 3\nreset 1 3\n");
}

TEST(H2Windows, OfTheConnectionGetBackWhatAStreamDidNotConsume) {
  H2Limits limits;
  limits.connection_window = 65'535;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string part = std::string(16'384, 'x');
  driver.feed(post(1) + data(1, part) + data(1, part) + rst_stream(1));
  EXPECT_EQ(driver.take_sent(), "");
  driver.session().consume(driver.stream(1), 1);
  driver.release(1);
  EXPECT_EQ(driver.take_sent(), "window_update 0 32768\n");
  driver.feed(data(1, part) + data(1, part));  // late, on a closed stream
  EXPECT_NE(driver.take_sent().find("window_update 0 32768\n"), std::string::npos);
}

TEST(H2Windows, OfTheConnectionGetBackTheRestOfAFrameThatIsDropped) {
  H2Limits limits;
  limits.connection_window = 65'535;
  SessionDriver driver(limits);
  driver.handshake();
  driver.consumes = false;
  const std::string large = data(1, std::string(16'384, 'x')) + data(1, std::string(16'384, 'x'));
  driver.feed(post(1) + large.substr(0, 20'000));
  driver.session().reset(driver.stream(1), H2Error::cancel);
  driver.release(1);
  EXPECT_EQ(driver.take_sent(), "reset 1 8\nwindow_update 0 32768\n");
  driver.take_events();
  driver.feed(large.substr(20'000));
  EXPECT_EQ(driver.take_events(), "");
}

/// A way in which the session drops 16 KiB of DATA that the peer sends on a stream.
struct DroppedData {
  std::string_view name;
  std::string_view answer;  // the frames about the stream, without its identifier
  void (*send)(SessionDriver& driver, std::uint32_t id, const std::string& part);
  std::uint64_t length = static_cast<std::uint64_t>(-1);  // of the body
};

const DroppedData dropped_data[] = {
    {"the peer has ended the stream", "reset 5",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(headers(id, "POST", end_headers | end_stream) + data(id, part));
     }},
    {"trailers have ended the stream", "reset 5",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id) + headers(id, "t", end_headers | end_stream) + data(id, part));
     }},
    {"both sides have ended the stream", "reset 5",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(headers(id, "GET", end_headers | end_stream));
       driver.answer(id);
       driver.take_sent();
       driver.feed(data(id, part));
     }},
    {"the peer has reset the stream", "reset 5",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id) + rst_stream(id) + data(id, part));
     }},
    {"the server has reset the stream", "reset 8",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id));
       driver.session().reset(driver.stream(id), H2Error::cancel);
       driver.feed(data(id, part));
     }},
    {"the window of the stream is smaller", "reset 3",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id) + data(id, part));
     }},
    {"the body is longer than its length", "reset 1",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id) + data(id, part));
     },
     100},
    {"the body is shorter than its length", "reset 1",
     [](SessionDriver& driver, std::uint32_t id, const std::string& part) {
       driver.feed(post(id) + data(id, part, end_stream));
     },
     20'000},
};

/// Returns true if DATA of 16 KiB exceeds the window of a stream in this case.
bool needs_small_window(const DroppedData& row) {
  return row.answer == "reset 3";
}

// A leak of 16 KiB would use up the window of the connection with the fourth stream.
TEST(H2Windows, OfTheConnectionGetBackAllDataThatIsDropped) {
  const std::string part(16'384, 'x');
  for (const DroppedData& row : dropped_data) {
    SCOPED_TRACE(row.name);
    H2Limits limits;
    limits.connection_window = 65'535;
    if (needs_small_window(row)) limits.stream_window = 512;
    SessionDriver driver(limits);
    driver.handshake();
    driver.consumes = false;
    driver.length = row.length;
    std::size_t returned = 0;
    std::uint32_t id = 1;
    for (int round = 0; round < 12; ++round, id += 2) {
      row.send(driver, id, part);
      std::string sent = driver.take_sent();
      const std::string answer =
          std::string(row.answer).insert(std::string("reset").size(), " " + std::to_string(id));
      EXPECT_NE(sent.find(answer + "\n"), sent.npos) << sent;
      if (sent.contains("window_update 0 32768\n")) returned += 32'768;
      ASSERT_FALSE(driver.session().failed()) << round << " " << sent;
      driver.release(id);
    }
    EXPECT_EQ(returned, 12U * 16'384U);
    driver.length = static_cast<std::uint64_t>(-1);
    driver.take_events();
    driver.feed(post(id) + data(id, part.substr(0, 500)));
    EXPECT_TRUE(driver.take_events().contains("data " + std::to_string(id))) << "it still receives";
  }
}

// The windows and the order of sent data.

TEST(H2Windows, LimitWhatIsSentOnAStreamAndOnTheConnection) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "a") + headers(3, "b"));
  EXPECT_EQ(send(driver, 1, 100'000), 65'535u);
  EXPECT_EQ(send(driver, 3, 100'000), 0u);
  driver.take_sent();
  driver.feed(window_update(1, 10));
  EXPECT_EQ(send(driver, 1, 100'000), 0u);
  driver.feed(window_update(0, 100));
  EXPECT_EQ(send(driver, 1, 100'000), 10u);
  EXPECT_EQ(send(driver, 3, 100'000), 90u);
  EXPECT_EQ(driver.take_sent(),
            "data 1 10 f0 [xxxxxxxxxx]\ndata 3 90 f0 [" + std::string(90, 'x') + "]\n");
}

TEST(H2Windows, EndAStreamOnlyWithItsLastByte) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 3));
  driver.feed(headers(1, "a"));
  EXPECT_EQ(send(driver, 1, 5, true), 3u);
  EXPECT_FALSE(driver.stream(1).local_ended());
  driver.feed(window_update(1, 2));
  EXPECT_EQ(send(driver, 1, 2, true), 2u);
  EXPECT_TRUE(driver.stream(1).closed());
  EXPECT_EQ(driver.take_sent(), "data 1 3 f0 [xxx]\ndata 1 2 f1 [xx]\n");
}

TEST(H2Windows, AllowAnEmptyFrameThatEndsAStream) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 0));
  driver.feed(headers(1, "a"));
  EXPECT_EQ(driver.session().send_data(driver.stream(1), {}, true), 0u);
  EXPECT_EQ(driver.take_sent(), "data 1 0 f1 []\n");
  EXPECT_TRUE(driver.stream(1).closed());
}

TEST(H2Windows, FollowTheInitialWindowOfThePeer) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 100));
  driver.feed(headers(1, "a"));
  EXPECT_EQ(send(driver, 1, 1'000), 100u);
  driver.feed(settings(setting(SettingId::initial_window_size, 40)));
  EXPECT_EQ(driver.stream(1).send_window(), -60);
  EXPECT_EQ(send(driver, 1, 1'000), 0u);
  driver.feed(window_update(1, 60));
  EXPECT_EQ(send(driver, 1, 1'000), 0u);
  driver.feed(settings(setting(SettingId::initial_window_size, 45)));
  EXPECT_EQ(send(driver, 1, 1'000), 5u);
  driver.feed(headers(3, "b"));
  EXPECT_EQ(driver.stream(3).send_window(), 45);
}

TEST(H2Windows, ReachTheLargestSizeExactly) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(post(1) + window_update(0, 0x7FFFFFFF - 65'535) +
              window_update(1, 0x7FFFFFFF - 65'535));
  EXPECT_EQ(driver.stream(1).send_window(), 0x7FFFFFFF);
  EXPECT_FALSE(driver.session().failed());
  driver.feed(window_update(0, 1));
  EXPECT_EQ(driver.take_sent(), "goaway 1 e3\n");
}

TEST(H2Output, IsLimitedForData) {
  H2Limits limits;
  limits.output_max = 20'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "a"));
  driver.session().want_send(driver.stream(1));
  EXPECT_EQ(send(driver, 1, 60'000), 32'768u);  // the last frame exceeds the limit
  EXPECT_EQ(driver.session().next_sender(), nullptr);
  driver.take_sent();
  EXPECT_EQ(driver.session().next_sender(), &driver.stream(1));
  EXPECT_EQ(send(driver, 1, 60'000), 32'767u);
}

// The order of senders.

/// Lets up to `frames` frames of 1,000 bytes be sent; returns the streams that sent them.
std::string senders(SessionDriver& driver, int frames) {
  std::string order;
  const std::string part(1'000, 'x');
  while (frames-- > 0) {
    H2Stream* const stream = driver.session().next_sender();
    if (stream == nullptr) break;
    order += std::to_string(stream->id()) + " ";
    driver.session().send_data(*stream, to_bytes(part), false);
  }
  return order;
}

TEST(H2Senders, AreOrderedByUrgencyAndThenByArrival) {
  SessionDriver driver;
  driver.handshake();
  for (const std::uint32_t id : {1U, 3U, 5U, 7U}) {
    driver.feed(headers(id, "a"));
    driver.session().want_send(driver.stream(id));
  }
  driver.session().set_priority(driver.stream(5), {.urgency = 0, .incremental = false});
  driver.session().set_priority(driver.stream(1), {.urgency = 7, .incremental = false});
  EXPECT_EQ(senders(driver, 2), "5 5 ");
  driver.session().stop_sending(driver.stream(5));
  EXPECT_EQ(senders(driver, 2), "3 3 ");
  driver.session().reset(driver.stream(3), H2Error::cancel);
  EXPECT_EQ(senders(driver, 1), "7 ");
  driver.session().stop_sending(driver.stream(7));
  EXPECT_EQ(senders(driver, 1), "1 ");
}

TEST(H2Senders, TakeTurnsIfTheyAreIncremental) {
  SessionDriver driver;
  driver.handshake();
  for (const std::uint32_t id : {1U, 3U, 5U}) {
    driver.feed(headers(id, "a"));
    driver.session().want_send(driver.stream(id));
    driver.session().set_priority(driver.stream(id), {.urgency = 3, .incremental = true});
  }
  EXPECT_EQ(senders(driver, 7), "1 3 5 1 3 5 1 ");
}

TEST(H2Senders, WaitForTheirWindow) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 1'500));
  driver.feed(headers(1, "a") + headers(3, "b"));
  driver.session().want_send(driver.stream(1));
  driver.session().want_send(driver.stream(3));
  EXPECT_EQ(senders(driver, 9), "1 1 3 3 ");
  driver.feed(window_update(3, 1));
  EXPECT_EQ(senders(driver, 9), "3 ");
  driver.feed(settings(setting(SettingId::initial_window_size, 1'501)));
  EXPECT_EQ(senders(driver, 9), "1 3 ");
  driver.feed(rst_stream(1) + window_update(1, 5));
  EXPECT_EQ(senders(driver, 9), "");
}

TEST(H2Senders, WaitForTheWindowOfTheConnection) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 1'000'000));
  driver.feed(headers(1, "a"));
  EXPECT_EQ(send(driver, 1, 65'535), 65'535u);
  driver.take_sent();
  driver.session().want_send(driver.stream(1));
  EXPECT_EQ(driver.session().next_sender(), nullptr);
  driver.feed(window_update(0, 1));
  EXPECT_EQ(driver.session().next_sender(), &driver.stream(1));
}

TEST(H2Windows, AreTheSameForEachWayToCutTheInput) {
  std::string input = post(1);
  for (int round = 0; round < 20; ++round) input += data(1, std::string(3'000, 'x'));
  input += data(1, "\5tail" + std::string(6, '\0'), FrameFlag::padded) + data(1, "", end_stream);
  std::string whole;
  for (const std::size_t step : {1'000'000U, 1U, 1'000U}) {
    SessionDriver driver;
    driver.handshake();
    driver.records = false;
    driver.feed(input, step);
    EXPECT_TRUE(driver.stream(1).remote_ended());
    EXPECT_EQ(driver.stream(1).unconsumed(), 0u);
    // The number of bytes may differ: they are returned when they are consumed.
    EXPECT_TRUE(driver.take_sent().starts_with("window_update 1 3"));
  }
}

// Whole responses.

TEST(H2WholeResponse, IsHeadersAndDataThatEndTheStream) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "GET") + headers(3, "GET"));
  EXPECT_TRUE(send_whole(driver, 1, 5));
  EXPECT_TRUE(send_whole(driver, 3, 0));
  EXPECT_EQ(driver.take_sent(), "block 1 1 f4 [h]\ndata 1 5 f1 [xxxxx]\nblock 3 1 f5 [h]\n");
  EXPECT_EQ(driver.session().data_sent(), 5u);
}

TEST(H2WholeResponse, WaitsForRoomInTheOutput) {
  H2Limits limits;
  limits.output_max = 1'000;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "GET") + headers(3, "GET") + headers(5, "GET"));
  EXPECT_EQ(send(driver, 1, 1'000 - frame_header_size, true), 1'000 - frame_header_size);
  EXPECT_FALSE(send_whole(driver, 3, 1));
  EXPECT_TRUE(send_whole(driver, 5, 0));  // a head is always sent
  EXPECT_FALSE(send_whole(driver, 3, 1));
  driver.take_sent();
  EXPECT_TRUE(send_whole(driver, 3, 1));
}

TEST(H2WholeResponse, FitsIntoTheWindowOfItsStream) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 100));
  driver.feed(headers(1, "GET"));
  EXPECT_FALSE(send_whole(driver, 1, 101));
  EXPECT_EQ(driver.stream(1).send_window(), 100);
  EXPECT_TRUE(send_whole(driver, 1, 100));
  driver.feed(headers(3, "GET") + settings(setting(SettingId::initial_window_size, 0)));
  EXPECT_FALSE(send_whole(driver, 3, 1));
  EXPECT_TRUE(send_whole(driver, 3, 0));
}

TEST(H2WholeResponse, FitsIntoTheWindowOfTheConnection) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 100'000));
  driver.feed(headers(1, "GET") + headers(3, "GET"));
  EXPECT_EQ(send(driver, 1, window_default - 100), window_default - 100);
  driver.session().take_output();
  EXPECT_FALSE(send_whole(driver, 3, 101));
  EXPECT_TRUE(send_whole(driver, 3, 100));
  EXPECT_FALSE(driver.session().may_send());
}

TEST(H2WholeResponse, FitsIntoOneFrame) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "GET"));
  EXPECT_FALSE(send_whole(driver, 1, frame_payload_default + 1));
  EXPECT_TRUE(send_whole(driver, 1, frame_payload_default));
}

TEST(H2WholeResponse, IsNotSentAfterTheEnd) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "GET") + headers(3, "GET") + rst_stream(1));
  const auto write = [](char* out) { return *out = 'h', out + 1; };
  EXPECT_FALSE(driver.session().send_whole(driver.stream(1), 1, write, {}));
  driver.session().abandon();
  EXPECT_FALSE(send_whole(driver, 3, 0));
  EXPECT_EQ(driver.take_sent(), "");
}

}  // namespace
}  // namespace weir::http::session_flow_test
