// Tests of the states of a stream of HTTP/2.
#include "weir/http/detail/h2/stream.hpp"

#include <gtest/gtest.h>

#include "weir/http/test/h2_stream_fixture.hpp"

namespace weir::http::h2_stream_test {
namespace {

using State = H2Stream::State;

/// A stream that the session has opened.
struct OpenStream {
  OpenStream() {
    H2StreamTest::begin(stream);
    H2StreamTest::open(stream);
  }
  ~OpenStream() { H2StreamTest::release(stream); }
  H2Stream stream;
};

TEST(H2Stream, BeginsIdle) {
  H2Stream stream;
  EXPECT_EQ(stream.state(), State::idle);
  EXPECT_EQ(stream.id(), 0u);
  EXPECT_FALSE(stream.remote_ended());
  EXPECT_FALSE(stream.local_ended());
  EXPECT_FALSE(stream.closed());
  H2StreamTest::begin(stream, 7);
  EXPECT_EQ(stream.state(), State::idle) << "until HEADERS";
  EXPECT_EQ(stream.id(), 7u);
  EXPECT_EQ(stream.send_window(), 100);
  EXPECT_TRUE(stream.may_receive());
  H2StreamTest::release(stream);
}

TEST(H2Stream, IsOpenInBothDirectionsAfterHeaders) {
  const OpenStream one;
  EXPECT_EQ(one.stream.state(), State::open);
  EXPECT_FALSE(one.stream.remote_ended());
  EXPECT_FALSE(one.stream.local_ended());
}

TEST(H2Stream, ClosesWhenThePeerEndsFirst) {
  OpenStream one;
  H2StreamTest::end_remote(one.stream);
  EXPECT_EQ(one.stream.state(), State::half_closed_remote);
  EXPECT_TRUE(one.stream.remote_ended());
  EXPECT_FALSE(one.stream.local_ended());
  EXPECT_FALSE(one.stream.closed());
  H2StreamTest::close(one.stream, false);
  EXPECT_TRUE(one.stream.remote_ended() && one.stream.local_ended() && one.stream.closed());
  EXPECT_FALSE(one.stream.was_reset());
}

TEST(H2Stream, ClosesWhenThePeerEndsLast) {
  OpenStream one;
  H2StreamTest::end_local(one.stream);
  EXPECT_EQ(one.stream.state(), State::half_closed_local);
  EXPECT_FALSE(one.stream.remote_ended());
  EXPECT_TRUE(one.stream.local_ended());
  H2StreamTest::close(one.stream, false);
  EXPECT_EQ(one.stream.state(), State::closed);
}

TEST(H2Stream, IsClosedByAReset) {
  OpenStream one;
  H2StreamTest::close(one.stream, true);
  EXPECT_TRUE(one.stream.closed());
  EXPECT_TRUE(one.stream.was_reset());
}

TEST(H2Stream, OfAClientCloseWithoutAHead) {
  H2Stream stream;
  H2StreamTest::begin(stream);
  H2StreamTest::close(stream, true);
  EXPECT_TRUE(stream.closed());
  H2StreamTest::release(stream);
}

TEST(H2Stream, MayServeAFurtherRequest) {
  H2Stream stream;
  H2StreamTest::begin(stream);
  H2StreamTest::set_facts(stream);
  H2StreamTest::close(stream, true);
  H2StreamTest::release(stream);
  H2StreamTest::begin(stream, 3, 50);
  EXPECT_EQ(stream.state(), State::idle);
  EXPECT_EQ(stream.id(), 3u);
  EXPECT_EQ(stream.send_window(), 50);
  EXPECT_FALSE(stream.was_reset());
  EXPECT_FALSE(H2StreamTest::has_facts(stream));
  H2StreamTest::release(stream);
}

#ifndef NDEBUG
TEST(H2StreamStates, RefuseToEndADirectionTwice) {
  EXPECT_DEATH(
      {
        OpenStream one;
        H2StreamTest::end_local(one.stream);
        H2StreamTest::end_local(one.stream);
      },
      "allows");
}

TEST(H2StreamStates, RefuseToOpenAClosedStream) {
  EXPECT_DEATH(
      {
        OpenStream one;
        H2StreamTest::close(one.stream, true);
        H2StreamTest::open(one.stream);
      },
      "allows");
}
#endif

}  // namespace
}  // namespace weir::http::h2_stream_test
