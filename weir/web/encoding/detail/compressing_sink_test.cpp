#include "weir/web/encoding/detail/compressing_sink.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::compressing_sink_test {
namespace {

using compression::available_codings;
using compression::Coding;
using compression::CompressorPool;
using compression::Decompressor;
using compression::words;
using detail::CompressedBody;
using detail::CompressingSink;

/// Keeps the pieces that were written.
class Pieces : public BodySink {
 public:
  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (pieces.size() == fail_at) co_return fail(Errc::closed);
    pieces.emplace_back(to_text(piece));
    co_return {};
  }
  std::vector<std::string> pieces;
  std::size_t fail_at = 1000;
};

class CompressingSinkTest : public LoopTest {
 protected:
  compression::PooledCompressor borrow(Coding coding) {
    return std::move(pool_.borrow({coding, 1}, 10).value());
  }
  CompressorPool pool_;
  Pieces pieces_;
};

Task<Result<>> write_events(BodySink& sink) {
  for (int index = 0; index < 20; ++index) {
    const std::string event = "event " + std::to_string(index) + "\n";
    if (auto sent = co_await sink.write(event); !sent) co_return sent;
  }
  WEIR_CO_TRY(sink.add_trailer("Content-Digest", "sha-256=:AA==:"));  // of the plain bytes
  co_return sink.add_trailer("X-Events", "20");
}

TEST_F(CompressingSinkTest, ShowsEachWriteToTheReceiver) {
  for (const Coding coding : available_codings()) {
    pieces_.pieces.clear();
    Decompressor receiver = std::move(Decompressor::make(coding).value());
    std::vector<std::byte> room(1000);
    Body body{StreamFunction(write_events)};
    {
      CompressedBody coded(std::move(body), borrow(coding));
      EXPECT_TRUE(run(coded(pieces_)).has_value());
    }
    ASSERT_EQ(pieces_.pieces.size(), 21u) << "one for each event, and the end";
    for (std::size_t index = 0; index < 20; ++index) {
      const auto progress = receiver.decompress(to_bytes(pieces_.pieces[index]), room);
      ASSERT_TRUE(progress.has_value());
      EXPECT_EQ(to_text(Bytes(room).first(progress->produced)),
                "event " + std::to_string(index) + "\n");
    }
    EXPECT_FALSE(receiver.finish().has_value());
    EXPECT_TRUE(receiver.decompress(to_bytes(pieces_.pieces[20]), room).has_value());
    EXPECT_TRUE(receiver.finish().has_value());
  }
  EXPECT_EQ(pieces_.trailers().get("X-Events"), "20");
  EXPECT_FALSE(pieces_.trailers().contains("Content-Digest"));
  EXPECT_EQ(pool_.borrowed(), 0u);
}

TEST_F(CompressingSinkTest, CompressesALargeTextInSlices) {
  const std::string text = words(10 * CompressingSink::slice + 1);
  CompressedBody coded(Body(text), borrow(Coding::gzip));
  EXPECT_TRUE(run(coded(pieces_)).has_value());
  EXPECT_GE(pieces_.pieces.size(), 3u) << "zlib collects some slices";
  std::string data;
  for (const std::string& each : pieces_.pieces) data += each;
  EXPECT_EQ(compression::decompressed(Coding::gzip, data), text);
}

Task<> count_turns(const bool& done, int& turns) {
  while (!done) {
    ++turns;
    co_await yield();
  }
}

TEST_F(CompressingSinkTest, LetsOtherTasksRunBetweenSlices) {
  const std::string text = words(10 * CompressingSink::slice);
  CompressedBody coded(Body(text), borrow(Coding::gzip));
  bool done = false;
  int turns = 0;
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(count_turns(done, turns));
    EXPECT_TRUE((co_await coded(pieces_)).has_value());
    done = true;
  };
  std::ignore = run(with_scope(OnFailure::isolate, both));
  EXPECT_GE(turns, 9);
}

TEST_F(CompressingSinkTest, SharesTheWorkOfATurnBetweenWrites) {
  const auto write_zeros = [](BodySink& sink) -> Task<Result<>> {
    const std::string zeros(CompressingSink::slice / 2, 'z');
    for (int count = 0; count < 64; ++count) WEIR_CO_TRY(co_await sink.write(zeros));
    co_return {};
  };
  const std::uint64_t before = loop_->counters().turns.value();
  CompressedBody coded(Body(StreamFunction(write_zeros)), borrow(Coding::gzip));
  EXPECT_TRUE(run(coded(pieces_)).has_value());
  EXPECT_GE(loop_->counters().turns.value() - before, 31U);
}

TEST_F(CompressingSinkTest, PassesTheErrorOfTheReceiverOn) {
  pieces_.fail_at = 3;
  CompressedBody coded(Body(StreamFunction(write_events)), borrow(Coding::gzip));
  EXPECT_EQ(run(coded(pieces_)).error(), Errc::closed);
  EXPECT_EQ(pieces_.pieces.size(), 3u);
}

TEST_F(CompressingSinkTest, ComparesTheLengthOfTheBody) {
  for (const std::uint64_t length : {10U, 1000U}) {
    pieces_.pieces.clear();
    CompressedBody coded(Body(StreamFunction(write_events), length), borrow(Coding::gzip));
    EXPECT_EQ(run(coded(pieces_)).error(), Errc::bad_input);
  }
}

}  // namespace
}  // namespace weir::http::compressing_sink_test
