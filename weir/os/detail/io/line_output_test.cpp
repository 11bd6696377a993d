// Tests that lines reach a pipe whole and that a stopped reader does not block the writer forever.
#include "weir/os/detail/io/line_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <string>
#include <thread>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os::line_output_test {
namespace {

using namespace std::chrono_literals;

/// A blocking pipe with room for 64 KiB, like that of standard error.
class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() : pipe_(open_pipe().value()), output(pipe_.write_end.get()) {
    const int flags = ::fcntl(pipe_.write_end.get(), F_GETFL);
    EXPECT_EQ(::fcntl(pipe_.write_end.get(), F_SETFL, flags & ~O_NONBLOCK), 0);
  }

  /// Reads all available bytes, or at most `most` bytes.
  std::string read(std::size_t most = std::string::npos) {
    std::string text;
    std::array<char, 4096> some{};
    while (text.size() < most) {
      const auto got =
          ::read(pipe_.read_end.get(), some.data(), std::min(some.size(), most - text.size()));
      if (got <= 0) break;
      text.append(some.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  /// Fills the pipe and returns the number of bytes written.
  std::size_t fill() {
    std::size_t lines = 0;
    while (output.write(std::string(1023, 'x'), Duration(0))) ++lines;
    return lines * 1024;
  }
  void close_reader() { pipe_.read_end.close(); }
  /// Makes another descriptor refer to the pipe.
  void redirect_to_pipe(const Fd& other) {
    EXPECT_EQ(::dup3(pipe_.write_end.get(), other.get(), O_CLOEXEC), other.get());
  }

 private:
  Pipe pipe_;

 protected:
  LineWriter output;
};

TEST_F(LineWriterTest, LinesArriveWhole) {
  errno = ERANGE;
  EXPECT_TRUE(output.write("one", 1s));
  EXPECT_TRUE(output.write("", 1s));
  EXPECT_TRUE(output.write("three", Duration(0)));
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(read(), "one\n\nthree\n");
}

TEST_F(LineWriterTest, LongLinesArriveWhole) {
  for (const std::size_t size : {4094U, 4095U, 4096U, 4097U, 8191U, 8192U, 50'000U}) {
    const std::string line(size, 'l');
    EXPECT_TRUE(output.write(line, 1s));
    EXPECT_EQ(read(), line + "\n");
  }
}

// A pipe with O_DIRECT keeps the boundaries of what is written.
TEST(LineWriter, WritesALineOf4KibibytesWithItsNewlineInOnePiece) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_DIRECT) != 0) GTEST_SKIP() << "pipes have no packets";
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  LineWriter output(writer.get());
  std::array<char, 2 * std::size_t{PIPE_BUF}> room{};
  const auto read_piece = [&] { return ::read(reader.get(), room.data(), room.size()); };
  for (const std::size_t size : {0U, 1U, 4094U, 4095U}) {
    EXPECT_TRUE(output.write(std::string(size, 'l'), 1s));
    EXPECT_EQ(read_piece(), static_cast<ssize_t>(size + 1));
  }
  EXPECT_TRUE(output.write(std::string(4096, 'l'), 1s));
  EXPECT_EQ(read_piece(), 4096);
  EXPECT_EQ(read_piece(), 1);
}

TEST_F(LineWriterTest, WaitsOnceAndForALimitedTimeForAStoppedReader) {
  EXPECT_GT(fill(), 0U);
  read();
  EXPECT_TRUE(output.write("there is room", 1h));
  read();
  std::string line(70'000, 'l');
  EXPECT_FALSE(output.write(line, 50ms)) << "the pipe has no room";
  const Instant before{std::chrono::steady_clock::now().time_since_epoch()};
  EXPECT_FALSE(output.write("another", 1h)) << "no room since the lost line";
  EXPECT_LT(std::chrono::steady_clock::now().time_since_epoch() - before.time_since_epoch(), 30min);
  const std::string begun = read();
  EXPECT_EQ(begun, line.substr(0, begun.size()));
  EXPECT_TRUE(output.write("read again", 1h));
  EXPECT_EQ(read(), "\nweir: log: 2 lines lost: the reader was too slow\nread again\n");
}

TEST_F(LineWriterTest, ANoticeCountsTheLinesThatWereLostSinceTheLast) {
  fill();  // its last line is lost
  EXPECT_FALSE(output.write("lost", Duration(0)));
  read();
  EXPECT_TRUE(output.write("first", Duration(0)));
  EXPECT_EQ(read(), "weir: log: 2 lines lost: the reader was too slow\nfirst\n");
  EXPECT_TRUE(output.write("second", Duration(0)));
  EXPECT_EQ(read(), "second\n") << "the notice is written once";
  fill();
  read();
  EXPECT_TRUE(output.write("third", Duration(0)));
  EXPECT_EQ(read(), "weir: log: 1 lines lost: the reader was too slow\nthird\n");
}

TEST_F(LineWriterTest, ANoticeEndsABegunLineOnlyOnce) {
  EXPECT_FALSE(output.write(std::string(70'000, 'l'), Duration(0)));
  EXPECT_FALSE(output.write("lost", Duration(0)));
  read();
  EXPECT_TRUE(output.write("first", Duration(0)));
  EXPECT_EQ(read(), "\nweir: log: 2 lines lost: the reader was too slow\nfirst\n");
  fill();
  read();
  EXPECT_TRUE(output.write("second", Duration(0)));
  EXPECT_EQ(read(), "weir: log: 1 lines lost: the reader was too slow\nsecond\n");
}

TEST_F(LineWriterTest, ALineThatTheDescriptorRejectsIsNotCounted) {
  const Fd device(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  LineWriter writer(device.get());
  errno = ERANGE;
  EXPECT_FALSE(writer.write("rejected", 1h));
  EXPECT_EQ(errno, ERANGE);
  redirect_to_pipe(device);
  EXPECT_TRUE(writer.write("one", 1h));
  EXPECT_EQ(read(), "one\n");
}

TEST_F(LineWriterTest, ASlowReaderLosesNothing) {
  const std::string line(200'000, 'l');
  std::string text;
  std::jthread reader([&] {
    while (text.size() < line.size() + 1) text += read(5000);
  });
  EXPECT_TRUE(output.write(line, 1h));
  reader.join();
  EXPECT_EQ(text, line + "\n");
}

TEST_F(LineWriterTest, ManyThreadsNeitherMixLinesNorWaitForever) {
  std::array<std::jthread, 4> threads;
  std::atomic<int> lost = 0;
  for (std::jthread& each : threads) {
    each = std::jthread([this, &lost] {
      const std::string line(99, 'x');
      for (int count = 0; count < 20'000; ++count) {
        if (!output.write(line, Duration(0))) ++lost;
      }
    });
  }
  for (std::jthread& each : threads) each.join();
  const std::string text = read();
  EXPECT_GT(text.size(), 50'000U);
  ASSERT_EQ(text.size() % 100, 0U);
  for (std::size_t at = 0; at < text.size(); at += 100) {
    ASSERT_EQ(text.substr(at, 100), std::string(99, 'x') + "\n");
  }
  EXPECT_EQ(text.size() / 100 + static_cast<std::size_t>(lost), 80'000U);
  EXPECT_TRUE(output.write("last", Duration(0)));
  EXPECT_EQ(read(),
            "weir: log: " + std::to_string(lost) + " lines lost: the reader was too slow\nlast\n");
}

TEST_F(LineWriterTest, WithoutAReaderALineIsLostImmediately) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  close_reader();
  EXPECT_FALSE(output.write("lost", 1h));
  std::signal(SIGPIPE, before);
  LineWriter closed(-1);
  EXPECT_FALSE(closed.write("lost", 20ms));
}

}  // namespace
}  // namespace weir::os::line_output_test
