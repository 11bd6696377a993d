// Attacks on HTTP/2 sessions, and honest clients that look similar: the accounts of work and bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/http/detail/h2/session.hpp"
#include "weir/http/test/h2_frames.hpp"
#include "weir/http/test/h2_session_fixture.hpp"
#include "weir/http/test/heap_fixture.hpp"

namespace weir::http::session_attack_test {
namespace {

using namespace frames;

constexpr std::uint8_t end_headers = FrameFlag::end_headers;
constexpr std::uint8_t end_stream = FrameFlag::end_stream;

/// The course of an attack until the session ends it.
struct Course {
  std::size_t free_rounds = 0;  // before the first delay
  std::size_t rounds = 0;       // before the end
  std::size_t delays = 0;
  std::string last;  // the last frame that was sent
};

/// Repeats `round(number)`, which returns frames, until the connection ends. The attacker reads all
/// that the session sends.
template <class Round>
Course attack(SessionDriver& driver, const Round& round) {
  Course course;
  driver.records = false;
  driver.releases = true;
  constexpr std::size_t most = 200'000;
  while (course.rounds < most && !driver.session().failed()) {
    driver.feed(round(static_cast<std::uint32_t>(course.rounds)));
    course.last = driver.take_sent();
    driver.release_closed();
    EXPECT_LE(driver.session().streams_held(), streams_held_max({}));
    ++course.rounds;
    if (driver.delays == 0) ++course.free_rounds;
  }
  course.delays = driver.delays;
  return course;
}

void expect_ended(const Course& course, std::size_t free_rounds_max) {
  EXPECT_LE(course.free_rounds, free_rounds_max);
  EXPECT_LE(course.rounds, 2 * free_rounds_max);
  EXPECT_EQ(course.delays, WorkLimits().delays_max);
  EXPECT_TRUE(course.last.ends_with(" e11\n")) << course.last;
}

std::uint32_t stream_of(std::uint32_t round) {
  return 2 * round + 1;
}

TEST(H2Attack, RapidResetIsDelayedAndEnded) {
  SessionDriver driver;
  driver.handshake();
  const Course course = attack(driver, [](std::uint32_t round) {
    return headers(stream_of(round), "GET") + rst_stream(stream_of(round));
  });
  expect_ended(course, 1'001);
}

TEST(H2Attack, DataDoesNotPayForResets) {
  SessionDriver uploads;
  uploads.handshake();
  expect_ended(attack(uploads,
                      [](std::uint32_t round) {
                        const std::uint32_t id = stream_of(round);
                        std::string all = headers(id, "POST", end_headers);
                        for (int each = 0; each < 12; ++each)
                          all += data(id, std::string(256, 'x'));
                        return all + rst_stream(id);
                      }),
               1'001);
  // The same with the DATA of the server.
  SessionDriver downloads;
  downloads.handshake();
  downloads.feed(window_update(0, 100'000'000));
  expect_ended(attack(downloads,
                      [&](std::uint32_t round) {
                        if (round == 0) return headers(1, "GET");
                        const std::uint32_t id = stream_of(round - 1);
                        for (int each = 0; each < 12; ++each) {
                          const std::string part(256, 'x');
                          downloads.session().send_data(downloads.stream(id), to_bytes(part),
                                                        false);
                        }
                        return rst_stream(id) + headers(stream_of(round), "GET");
                      }),
               1'002);
}

TEST(H2Attack, AnEmptyAccountDelaysTheNextRequest) {
  H2Limits limits;
  limits.work.burst = WorkUnits::reset;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "GET") + rst_stream(1) + headers(3, "GET"));
  EXPECT_EQ(driver.take_events(), "open 1 [GET] end\nreset 1 e8\ndelay\nopen 3 [GET] end\n");
  EXPECT_EQ(driver.delays, 1u);
}

TEST(H2Attack, MadeYouResetIsDelayedAndEnded) {
  const auto open = [](std::uint32_t id) { return headers(id, "POST", end_headers); };
  const auto get = [](std::uint32_t id) { return headers(id, "GET"); };
  using Make = std::string (*)(std::uint32_t);
  for (const Make after : {
           Make([](std::uint32_t id) { return window_update(id, 0); }),
           Make([](std::uint32_t id) { return window_update(id, 0x7FFFFFFF); }),
           Make([](std::uint32_t id) { return frame(FrameType::priority, 0, id, "1234"); }),
           Make([](std::uint32_t id) {
             return frame(FrameType::priority, 0, id, u32(id) + "\x10");
           }),
           Make([](std::uint32_t id) { return headers(id, "t", end_headers); }),
       }) {
    SessionDriver driver;
    driver.handshake();
    expect_ended(attack(driver,
                        [&](std::uint32_t round) {
                          return open(stream_of(round)) + after(stream_of(round));
                        }),
                 1'001);
  }
  for (const Make after : {Make([](std::uint32_t id) { return data(id, "x"); }),
                           Make([](std::uint32_t id) { return headers(id, "x"); })}) {
    SessionDriver driver;
    driver.handshake();
    expect_ended(attack(driver,
                        [&](std::uint32_t round) {
                          return get(stream_of(round)) + after(stream_of(round));
                        }),
                 1'001);
  }
}

TEST(H2Attack, BodiesOfTheWrongLengthAreDelayedAndEnded) {
  SessionDriver driver;
  driver.handshake();
  driver.length = 5;
  expect_ended(attack(driver,
                      [](std::uint32_t round) {
                        return headers(stream_of(round), "POST", end_headers) +
                               data(stream_of(round), "1234", end_stream);
                      }),
               1'001);
}

TEST(H2Attack, ResetsOfTheCarrierAreDelayedAndEnded) {
  SessionDriver driver;
  driver.handshake();
  expect_ended(attack(driver,
                      [&](std::uint32_t round) {
                        if (round != 0) {
                          driver.session().reset(driver.stream(stream_of(round - 1)),
                                                 H2Error::protocol_error);
                        }
                        return headers(stream_of(round), "malformed");
                      }),
               1'001);
}

TEST(H2Attack, RefusedStreamsAreDelayedAndEnded) {
  SessionDriver driver;
  driver.handshake();
  std::uint32_t id = 1;
  for (; id < 2 * 128; id += 2) driver.feed(headers(id, "GET"));
  expect_ended(attack(driver, [&](std::uint32_t round) { return headers(id + 2 * round, "GET"); }),
               1'001);
}

TEST(H2Attack, FloodsOfFramesAreDelayedAndEnded) {
  for (const std::string& flood :
       {ping(), settings(), frame(FrameType::settings, FrameFlag::ack, 0), window_update(0, 1),
        window_update(1, 1), data(1, ""), data(1, std::string("\3\0\0\0", 4), FrameFlag::padded),
        frame(FrameType::priority, 0, 1, u32(3) + "\x10"),
        frame(FrameType::priority, 0, 99, u32(3) + "\x10"),
        frame(FrameType::priority_update, 0, 0, u32(1) + "u=1"), goaway(0), rst_stream(3),
        window_update(3, 1), data(3, "x"), frame(static_cast<FrameType>(99), 0, 1, "x")}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, "POST", end_headers) + headers(3, "GET"));
    driver.session().reset(driver.stream(3), H2Error::no_error);
    expect_ended(attack(driver, [&](std::uint32_t) { return flood; }), 10'001);
  }
}

TEST(H2Attack, SettingsWithManyEntriesAreDelayedAndEnded) {
  SessionDriver driver;
  driver.handshake();
  for (std::uint32_t id = 1; id < 2 * 128; id += 2) driver.feed(headers(id, "GET"));
  std::string entries;
  for (std::uint32_t at = 0; at < 2'000; ++at) {
    entries += setting(SettingId::initial_window_size, at % 2);
  }
  const Course course = attack(driver, [&](std::uint32_t) { return settings(entries); });
  EXPECT_EQ(course.rounds, 1u);
}

TEST(H2Attack, FloodsThatAreNotReadEndTheConnection) {
  H2Limits limits;
  limits.control_bytes_max = 8 * 1024;
  for (const std::string& flood :
       {ping(), settings(), headers(1, "x"), frame(FrameType::priority, 0, 1, "1234")}) {
    SessionDriver driver(limits);
    driver.handshake();
    driver.feed(headers(1, "GET") + rst_stream(1));
    driver.take_sent();
    std::size_t frames = 0;
    for (; frames < 2'000 && !driver.session().failed(); ++frames) driver.feed(flood);
    EXPECT_LT(frames, 1'000u);
    EXPECT_LE(driver.session().output().size(), limits.control_bytes_max + 2 * goaway_size);
    EXPECT_TRUE(driver.take_sent().ends_with(" e11\n"));
  }
}

TEST(H2Attack, ContinuationFloodEndsTheConnection) {
  const H2Limits limits;
  for (const std::string_view part : {"", "x"}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, part, end_stream));
    std::uint32_t frames = 1;
    for (; frames < 100 && !driver.session().failed(); ++frames) {
      driver.feed(continuation(1, part, 0));
    }
    EXPECT_EQ(frames, limits.block_frames_max + 1);
    EXPECT_EQ(driver.take_sent(), "goaway 0 e11\n");
  }
}

TEST(H2Attack, LongFieldBlocksEndTheConnection) {
  H2Limits limits;
  limits.block_bytes_max = 40'000;
  const std::string part(10'000, 'x');
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, part, end_stream) + continuation(1, part, 0) + continuation(1, part, 0) +
              continuation(1, part));
  EXPECT_FALSE(driver.session().failed());
  driver.feed(headers(3, part, end_stream) + continuation(3, part, 0) + continuation(3, part, 0) +
              continuation(3, part, 0));
  EXPECT_FALSE(driver.session().failed());
  driver.feed(continuation(3, "x"));
  EXPECT_EQ(driver.take_sent(), "goaway 1 e11\n");
}

TEST(H2Attack, LongFieldBlockInOneFrameEndsTheConnection) {
  H2Limits limits;
  limits.block_bytes_max = 10;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "0123456789"));
  EXPECT_TRUE(driver.has_stream(1));
  driver.feed(headers(3, "0123456789x"));
  EXPECT_EQ(driver.take_sent(), "goaway 1 e11\n");
}

// Honest clients.

TEST(H2Honest, BrowserThatLeavesPagesIsNotDelayed) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::initial_window_size, 131'072));
  driver.records = false;
  std::uint32_t id = 1;
  for (int page = 0; page < 200; ++page) {
    // A page has 100 requests. The user leaves it when a fifth is complete.
    const std::uint32_t first = id;
    for (; id < first + 200; id += 2) {
      driver.feed(headers(id, "GET") + frame(FrameType::priority_update, 0, 0, u32(id) + "u=4"));
    }
    for (std::uint32_t at = first; at < first + 40; at += 2) driver.answer(at, "page");
    for (std::uint32_t at = first + 40; at < id; at += 2) driver.feed(rst_stream(at));
    driver.release_closed();
    driver.take_sent();
    driver.pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(driver.delays, 0u);
}

TEST(H2Honest, GrpcClientThatCancelsCallsIsNotDelayed) {
  // Half of the calls are cancelled, at any rate: hedged requests.
  SessionDriver hedged;
  hedged.handshake();
  hedged.records = false;
  hedged.feed(window_update(0, 1'000'000));
  std::uint32_t id = 1;
  for (int call = 0; call < 10'000; ++call, id += 4) {
    hedged.feed(headers(id, "POST", end_headers) + data(id, "message", end_stream) + ping() +
                headers(id + 2, "POST") + rst_stream(id + 2));
    hedged.answer(id, "answer");
    hedged.release_closed();
    hedged.take_sent();
    if (call % 10 == 0) hedged.pass(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(hedged.delays, 0u);
  // All calls are streams that the client cancels: 90 in each second.
  SessionDriver streams;
  streams.handshake();
  streams.records = false;
  for (std::uint32_t call = 0; call < 5'000; ++call) {
    streams.feed(headers(stream_of(call), "POST", end_headers) +
                 data(stream_of(call), "message", end_stream) + rst_stream(stream_of(call)));
    streams.release_closed();
    streams.take_sent();
    streams.pass(std::chrono::microseconds(11'111));
  }
  EXPECT_EQ(streams.delays, 0u);
}

TEST(H2Honest, ClientThatAcknowledgesEachDataFrameIsNotDelayed) {
  SessionDriver driver;
  driver.handshake();
  driver.records = false;
  driver.feed(headers(1, "GET"));
  const std::string part(16'384, 'x');
  for (int round = 0; round < 12'000; ++round) {
    ASSERT_EQ(driver.session().send_data(driver.stream(1), to_bytes(part), false), part.size());
    driver.session().take_output();
    driver.feed(window_update(0, 16'384) + window_update(1, 16'384));
  }
  EXPECT_EQ(driver.delays, 0u);
}

TEST(H2Honest, UploadIsNotDelayed) {
  SessionDriver driver;
  driver.handshake();
  driver.records = false;
  driver.feed(headers(1, "POST", end_headers));
  const std::string part = data(1, std::string(16'384, 'x')) + ping();
  for (int round = 0; round < 12'000; ++round) {
    driver.feed(part);
    driver.session().take_output();
  }
  EXPECT_EQ(driver.delays, 0u);
}

TEST(H2Honest, ClientThatWasDelayedRecovers) {
  SessionDriver driver;
  driver.handshake();
  driver.records = false;
  for (int burst = 0; burst < 30; ++burst) {
    for (std::uint32_t at = 0; at < 10'100; ++at) {
      driver.feed(ping());
      driver.session().take_output();
    }
    driver.pass(std::chrono::seconds(10));
  }
  EXPECT_FALSE(driver.session().failed());
  EXPECT_GT(driver.delays, 0u);
}

// Memory.

TEST(H2Memory, StaysWithinItsBound) {
  H2Limits limits;
  limits.streams_max = 10;
  limits.block_bytes_max = 100'000;
  limits.block_frames_max = 100;
  const std::uint64_t bound = session_bytes_max(limits, sizeof(H2Stream));
  const std::size_t before = allocated_bytes();
  SessionDriver driver(limits);
  driver.handshake(setting(SettingId::initial_window_size, 1'000'000));
  driver.records = false;
  std::uint32_t id = 1;
  for (; id < 100; id += 2) driver.feed(headers(id, "GET") + rst_stream(id));
  const std::string part(16'384, 'x');
  driver.feed(window_update(0, 1'000'000));
  std::size_t most = 0;
  const auto look = [&] { most = std::max(most, allocated_bytes() - before); };
  for (std::uint32_t at = 1; at < id; at += 2) {
    if (!driver.has_stream(at) || driver.stream(at).closed()) continue;
    while (driver.session().send_data(driver.stream(at), to_bytes(part), false) != 0) look();
  }
  driver.feed(headers(id, part, end_stream));
  for (int round = 0; round < 5; ++round) {
    driver.feed(continuation(id, part, 0));
    look();
  }
  EXPECT_LE(most, bound);
}

TEST(H2Memory, OfAnIdleSessionIsItsObject) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "x", end_stream) + continuation(1, "y"));
  driver.answer(1, "hello");
  driver.release_closed();
  driver.take_sent();
  driver.take_events();
  const std::size_t with = allocated_bytes();
  driver.session().drop_idle_memory();
  EXPECT_TRUE(allocated_bytes() == 0 || allocated_bytes() + 16'384 < with);
  EXPECT_LE(sizeof(H2Session), 640u);
  EXPECT_LE(sizeof(H2Stream), 80u);
  driver.feed(headers(3, "again"));
  driver.session().drop_idle_memory();  // keeps the table of the open stream
  driver.feed(rst_stream(3));
  EXPECT_TRUE(driver.stream(3).was_reset());
}

TEST(H2Memory, BoundGrowsWithEachLimit) {
  const H2Limits limits;
  const std::uint64_t usual = session_bytes_max(limits, 1'000);
  EXPECT_LT(usual, 4u * 1024 * 1024);
  const auto grown = [&](auto member) {
    H2Limits more = limits;
    more.*member *= 2;
    return session_bytes_max(more, 1'000);
  };
  for (const auto member :
       {&H2Limits::streams_max, &H2Limits::connection_window, &H2Limits::block_bytes_max,
        &H2Limits::control_bytes_max, &H2Limits::output_max}) {
    EXPECT_GE(grown(member), usual);
  }
  EXPECT_GT(grown(&H2Limits::connection_window), usual);
  EXPECT_GT(session_bytes_max(limits, 2'000), usual);
}

}  // namespace
}  // namespace weir::http::session_attack_test
