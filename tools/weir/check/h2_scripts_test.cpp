// Tests of the cases about HTTP/2 against servers with canned answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/h2_cases.hpp"
#include "tools/weir/check/h2_clients.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::check::h2_scripts_test {
namespace {

using http::FrameFlag;
using http::FrameType;
using http::H2Error;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

const std::string settings = h2_frame(FrameType::settings, 0, 0, "");

std::string reset(H2Error error) {
  return settings + h2_frame(FrameType::rst_stream, 0, 1, number(static_cast<unsigned>(error)));
}
std::string goaway(H2Error error) {
  return settings +
         h2_frame(FrameType::goaway, 0, 0, number(0) + number(static_cast<unsigned>(error)));
}
std::string answer(const std::string& status) {
  return settings +
         h2_frame(FrameType::headers, FrameFlag::end_headers, 1,
                  h2_block({{":status", status}, {"x", std::string(300, 'v')}})) +
         h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello\n");
}
const std::string pong = settings + h2_frame(FrameType::ping, FrameFlag::ack, 0, "8 bytes!");

class H2Scripts : public ScriptTest {
 protected:
  /// Returns the kind of the verdict on a server that gives this answer, and closes or not.
  std::string kind(const H2Case& test_case, const std::string& bytes, bool close = false) {
    const std::string text = check("http2/" + std::string(test_case.name), [&](tcp::Stream stream) {
      return serve(std::move(stream), bytes, close);
    });
    EXPECT_FALSE(verdict_.expected.empty()) << test_case.name;
    EXPECT_FALSE(verdict_.sent.empty()) << test_case.name;
    return text.substr(0, text.find(':'));
  }
  static Task<> serve(tcp::Stream stream, std::string bytes, bool close) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    const auto sent = co_await stream.write(bytes);
    if (sent && !close) co_await read_to_end(stream);
  }
  static Task<> record(tcp::Stream stream, std::string& input) {
    const auto sent = co_await stream.write(settings);
    for (bool is_open = sent.has_value(); is_open;) {
      const auto piece = co_await stream.read();
      if (piece) input += piece->text();
      is_open = piece.has_value();
    }
  }
  /// Answers the first connection with SETTINGS, and later ones with 200, or not.
  std::string attack(const H2Case& test_case, bool serves_others) {
    const std::string text =
        check("http2/" + std::string(test_case.name), [=, this](tcp::Stream stream) {
          const bool is_attack = connections_ == 1;
          return serve(std::move(stream),
                       is_attack ? settings : response(serves_others ? 200 : 500), false);
        });
    return text.substr(0, text.find(':'));
  }
  /// Answers the requests of some rounds.
  Task<> serve_client(tcp::Stream stream, const H2Client& client, std::uint32_t rounds) {
    auto sent = co_await stream.write(settings);
    std::size_t size = h2_begin().size() + client.begin.size();
    for (std::uint32_t number = 0; sent && number < rounds; ++number) {
      const H2Round round = client.round(target_, number);
      for (size += round.frames.size(); size != 0;) {
        const auto input = co_await stream.read();
        if (!input) co_return;
        size -= std::min(size, input->size());
      }
      std::string bytes;
      for (const std::uint32_t id : round.answered) {
        bytes += h2_frame(FrameType::headers, FrameFlag::end_headers | FrameFlag::end_stream, id,
                          h2_block({{":status", "200"}}));
      }
      sent = co_await stream.write(bytes);
    }
    if (sent) co_await read_to_end(stream);
  }
  std::uint64_t growth_ = 0;  // of the memory, in each measurement
  static std::vector<H2Case> cases_of(H2Wanted wanted) {
    std::vector<H2Case> all = h2_cases();
    std::erase_if(all, [wanted](const H2Case& each) { return each.wanted != wanted; });
    EXPECT_FALSE(all.empty());
    return all;
  }
};

TEST_F(H2Scripts, AGetNeedsTheAnswerOfTheBaseline) {
  const H2Case get = cases_of(H2Wanted::served).front();
  EXPECT_EQ(kind(get, answer("200")), "passed");
  EXPECT_EQ(verdict_.actual, "200");
  EXPECT_EQ(kind(get, answer("404")), "failed");
  EXPECT_EQ(kind(get, reset(H2Error::refused_stream)), "failed");
  EXPECT_EQ(kind(get, settings, true), "failed");
  EXPECT_EQ(kind(get, settings), "failed");
}

TEST_F(H2Scripts, MalformedRequestsNeedAStreamError) {
  for (const H2Case& each : cases_of(H2Wanted::stream_error)) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, reset(each.error)), "passed");
    EXPECT_EQ(kind(each, answer("400")), "passed");
    EXPECT_EQ(kind(each, goaway(H2Error::protocol_error)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, answer("200")), "failed");
    EXPECT_EQ(kind(each, answer("500")), "failed");
    EXPECT_EQ(kind(each, settings), "failed");
    EXPECT_EQ(kind(each, reset(H2Error::internal_error)), "failed");
  }
}

TEST_F(H2Scripts, InvalidFramesNeedAConnectionError) {
  for (const H2Case& each : cases_of(H2Wanted::connection_error)) {
    SCOPED_TRACE(each.name);
    target_.lenient = false;
    EXPECT_EQ(kind(each, goaway(each.error)), "passed");
    EXPECT_EQ(kind(each, goaway(H2Error::internal_error)), "failed");
    EXPECT_EQ(kind(each, settings, true), "failed");
    EXPECT_EQ(kind(each, answer("200")), "failed");
    target_.lenient = true;
    EXPECT_EQ(kind(each, goaway(H2Error::internal_error)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, settings), "failed");
  }
}

TEST_F(H2Scripts, FloodsMustNotBeServedToTheirEnd) {
  for (const H2Case& each : SweepBudget::sample(cases_of(H2Wanted::bounded), 6)) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, goaway(H2Error::enhance_your_calm)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, settings), "passed");
    EXPECT_EQ(kind(each, pong), "failed");
  }
}

TEST_F(H2Scripts, ALenientCheckAcceptsFramesThatTheRfcAllows) {
  target_.lenient = true;
  for (const H2Case& each : SweepBudget::sample(cases_of(H2Wanted::bounded), 6)) {
    EXPECT_EQ(kind(each, pong), each.may_serve ? "passed" : "failed") << each.name;
  }
}

TEST_F(H2Scripts, OtherPingsAreNotTheEndOfAFlood) {
  const H2Case flood = cases_of(H2Wanted::bounded).front();
  EXPECT_EQ(kind(flood, settings + h2_frame(FrameType::ping, FrameFlag::ack, 0, "a flood.")),
            "passed");
}

TEST_F(H2Scripts, SlowClientsMustBeCutOffInTime) {
  target_.slow_timeout = std::chrono::seconds(20);
  for (const H2Case& each : cases_of(H2Wanted::cut_off)) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, reset(H2Error::cancel)), "passed");
    EXPECT_EQ(kind(each, goaway(H2Error::enhance_your_calm)), "passed");
    EXPECT_EQ(kind(each, answer("408")), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    const Instant start = platform_.now();
    EXPECT_EQ(kind(each, settings), "failed");
    EXPECT_GE(platform_.now() - start, target_.slow_timeout);
  }
}

TEST_F(H2Scripts, SendsThePiecesOfASlowClient) {
  target_.slow_timeout = std::chrono::seconds(3);
  std::string input;
  const H2Case test_case = *std::ranges::find(h2_cases(), "slow-data", &H2Case::name);
  check("http2/slow-data", [&](tcp::Stream stream) { return record(std::move(stream), input); });
  std::size_t pieces = 0;
  for (; input.ends_with(test_case.piece); ++pieces) {
    input.resize(input.size() - test_case.piece.size());
  }
  EXPECT_GE(pieces, 4U);
  EXPECT_LE(pieces, 6U);
}

TEST_F(H2Scripts, AttacksOnMemoryAreJudgedByWhatTheServerHolds) {
  std::uint64_t held = 0;
  target_.memory_max = 1 << 20U;
  for (const H2Case& each : cases_of(H2Wanted::held)) {
    SCOPED_TRACE(each.name);
    target_.memory = nullptr;
    EXPECT_EQ(attack(each, true), "not applicable");
    target_.memory = [this, &held] { return std::optional(held += growth_); };
    growth_ = 1 << 20U;
    EXPECT_EQ(attack(each, true), "passed");
    EXPECT_EQ(verdict_.actual, "1 MiB more");
    growth_ = 3 << 20U;
    EXPECT_EQ(attack(each, true), "failed");
    EXPECT_EQ(verdict_.actual, "3 MiB more");
    growth_ = 0;
    EXPECT_EQ(attack(each, false), "failed");
    EXPECT_TRUE(verdict_.actual.starts_with("a GET beside the attack got: "));
  }
}

TEST_F(H2Scripts, HonestClientsNeedAllAnswers) {
  for (const H2Client& each : h2_clients()) {
    SCOPED_TRACE(each.name);
    const H2Round first = each.round(target_, 0);
    EXPECT_FALSE(first.answered.empty());
    const std::string name = "http2/" + std::string(each.name);
    const auto serve_to = [&](std::uint32_t rounds) {
      return check(name, [&, rounds](tcp::Stream stream) {
        return serve_client(std::move(stream), each, rounds);
      });
    };
    EXPECT_EQ(serve_to(each.rounds), "passed: " + std::to_string(each.rounds) + " rounds");
    EXPECT_TRUE(serve_to(1).starts_with("failed: no answer in round 1, stream "));
    EXPECT_TRUE(serve_to(0).starts_with("failed: no answer in round 0, stream "));
    EXPECT_TRUE(check(name, [](tcp::Stream stream) {
                  return serve(std::move(stream), goaway(H2Error::enhance_your_calm), true);
                }).starts_with("failed: "));
    EXPECT_EQ(
        check(name,
              [](tcp::Stream stream) { return serve(std::move(stream), response(400), true); }),
        "not applicable: no HTTP/2: no HTTP/2 by prior knowledge");
  }
}

TEST_F(H2Scripts, AServerWithoutHttp2IsNotJudged) {
  const H2Case get = cases_of(H2Wanted::served).front();
  EXPECT_EQ(kind(get, response(505), true), "not applicable");
  EXPECT_EQ(verdict_.actual, "no HTTP/2: no HTTP/2 by prior knowledge");
  EXPECT_EQ(kind(get, "", true), "not applicable");
  EXPECT_EQ(kind(cases_of(H2Wanted::bounded).front(), response(400)), "not applicable");
}

TEST(H2Answers, ReadsFramesInPieces) {
  const std::string bytes = answer("200") + pong + goaway(H2Error::no_error);
  H2Answers answers;
  for (const char each : bytes) answers.read({&each, 1});
  EXPECT_TRUE(answers.speaks_h2());
  EXPECT_EQ(answers.on(1).status, 200);
  EXPECT_TRUE(answers.on(1).complete());
  EXPECT_FALSE(answers.on(3).complete());
  EXPECT_EQ(answers.pings(), 1U);
  EXPECT_EQ(answers.goaway(), H2Error::no_error);
}

TEST(H2Answers, ReadsABlockInContinuation) {
  const std::string block = h2_block({{":status", "204"}});
  H2Answers answers;
  answers.read(settings +
               h2_frame(FrameType::headers, FrameFlag::end_stream, 1, block.substr(0, 4)));
  EXPECT_FALSE(answers.on(1).ended);
  answers.read(h2_frame(FrameType::continuation, FrameFlag::end_headers, 1, block.substr(4)));
  EXPECT_EQ(answers.on(1).status, 204);
  EXPECT_TRUE(answers.on(1).ended);
}

TEST(H2Cases, HaveUniqueNamesAndSendFrames) {
  CheckTarget target;
  target.authority = "a.test";
  std::vector<std::string_view> names;
  for (const H2Case& each : h2_cases()) {
    names.push_back(each.name);
    EXPECT_FALSE(each.frames(target).empty()) << each.name;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace weir::check::h2_scripts_test
