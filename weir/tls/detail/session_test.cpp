// Tests the session over an inner stream whose sends never wait.
#include "weir/tls/detail/session.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "weir/task/combinators.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls::detail::session_test {
namespace {

/// The sends of a stream. "|" stands behind a last send, and "." for the end.
struct SendLog {
  bool keeps = false;
  std::string text;
  std::size_t takes = std::string::npos;  ///< bytes of the next send before it fails
  CloseMode close_mode = CloseMode::orderly;
};

/// A stream that takes all bytes immediately and receives none.
class Sink final : public weir::Stream {
 public:
  Sink(Loop& loop, SendLog& log) noexcept : weir::Stream(loop), log_(log) {}
  Sink(Sink&& other) noexcept : weir::Stream(other), log_(other.log_) {}
  Result<> finish_writing() override {
    log_.text += '.';
    return {};
  }
  void close() override {}
  Result<> set_close_mode(CloseMode mode) override {
    log_.close_mode = mode;
    return {};
  }
  os::Address peer_address() const override { return {}; }
  os::Address local_address() const override { return {}; }
  std::size_t unacked_bytes() const override { return 0; }
  void observe_hangup(loop::HangupObserver*) override {}

 private:
  bool start_receive(loop::ReceiveOperation& operation) override {
    operation.pending();
    return false;
  }
  bool start_send(loop::SendOperation& operation) override {
    if (log_.takes != std::string::npos) {
      operation.sent = std::exchange(log_.takes, std::string::npos);
      operation.finish(system_error(ECONNRESET));
      return true;
    }
    for (const Bytes piece : operation.pieces) {
      if (log_.keeps) log_.text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    if (operation.last) log_.text += '|';
    operation.finish();
    return true;
  }
  void cancel_operation(loop::Operation& operation) override {
    operation.finish(Errc::cancelled);
    loop().ready(operation);
  }
  weir::Stream* move_to(void* room) noexcept override { return new (room) Sink(std::move(*this)); }

  SendLog& log_;
};

/// Records without encryption.
class PlainRecords final : public RecordLayer {
 public:
  Opened open(Buffer& input, Buffer&, Buffer&) override {
    input.clear();
    return Opened::none;
  }
  bool has_input() const noexcept override { return false; }
  std::error_code seal(Bytes plain, Buffer& output) override {
    append(plain, output);
    return {};
  }
  void seal_close(Buffer& output) override {
    if (!std::exchange(closed_, true)) append(to_bytes("!"), output);
  }
  std::error_code error() const noexcept override { return {}; }

 private:
  static void append(Bytes bytes, Buffer& output) {
    output.make_room(bytes.size());
    std::memcpy(output.room().data(), bytes.data(), bytes.size());
    output.commit(bytes.size());
  }

  bool closed_ = false;
};

class SessionTest : public TlsTest {
 protected:
  Stream stream() {
    AnyStream inner = Sink(*loop_, log_);
    auto info = std::make_shared<const TlsInfo>();
    return Stream(make_block<Session>(std::move(inner), std::make_unique<PlainRecords>(),
                                      std::move(info), Buffer(), Buffer()));
  }
  std::uint64_t turns() const { return loop_->counters().turns.value(); }

  SendLog log_;
};
INSTANTIATE_TEST_SUITE_P(On, SessionTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SessionTest, IdleOneIsSmall) {
  EXPECT_LE(sizeof(Session), 232U);
}

TEST_P(SessionTest, LongWriteLetsOtherWorkOfTheCoreRun) {
  const auto talk = [this]() -> Task<> {
    Stream open = stream();
    const std::string text(16 * 1024 * 1024, 'x');
    const std::uint64_t before = turns();
    EXPECT_TRUE(co_await open.write(text));
    EXPECT_GE(turns() - before, text.size() / (256 * 1024));
    const std::uint64_t between = turns();
    EXPECT_TRUE(co_await open.write("short"));
    EXPECT_EQ(turns(), between) << "a short write does not wait";
  };
  run(talk());
}

TEST_P(SessionTest, WriteIsCancelledBetweenItsParts) {
  const auto talk = [this]() -> Task<> {
    Stream open = stream();
    const std::string text(16 * 1024 * 1024, 'x');
    Result<> written;
    std::size_t sent = 0;
    const auto write = [&]() -> Task<> { written = co_await open.write(text); };
    const auto cancel = [&]() -> Task<> {
      sent = open.pending_write_sent();
      open.cancel_write();
      co_return;
    };
    auto writing = write();
    auto cancelling = cancel();
    std::ignore = co_await all(std::move(writing), std::move(cancelling));
    EXPECT_TRUE(!written && written.error() == Errc::cancelled);
    EXPECT_GT(sent, 0U);
    EXPECT_LT(sent, text.size());
    EXPECT_FALSE(co_await open.write("more")) << "a part of the text is sent";
  };
  run(talk());
}

// The peer may have opened a record of a batch of which the kernel has taken a part.
TEST_P(SessionTest, BatchOfWhichTheKernelHasTakenAByteCountsAsSent) {
  const auto talk = [this]() -> Task<> {
    const std::string text(30'000, 'x');
    for (const std::size_t taken : {0U, 1U, 4'002U}) {
      Stream open = stream();
      const auto whole = co_await CountedWrite(open, text);
      EXPECT_EQ(whole.first, text.size());
      log_.takes = taken;
      const auto failed = co_await CountedWrite(open, text);
      EXPECT_EQ(failed.second, system_error(ECONNRESET));
      EXPECT_EQ(failed.first, taken == 0 ? 0U : text.size()) << taken;
    }
  };
  run(talk());
}

TEST_P(SessionTest, CloseWithAResetSendsNoCloseNotify) {
  log_.keeps = true;
  const auto talk = [this]() -> Task<> {
    Stream cut = stream();
    EXPECT_TRUE(co_await cut.write("a"));
    EXPECT_TRUE(cut.set_close_mode(CloseMode::reset));
    EXPECT_EQ(log_.close_mode, CloseMode::reset);
    cut.close();
    EXPECT_EQ(std::exchange(log_.text, {}), "a");
    const Result<> late = cut.set_close_mode(CloseMode::orderly);
    EXPECT_TRUE(!late && late.error() == Errc::closed);
    Stream whole = stream();
    EXPECT_TRUE(whole.set_close_mode(CloseMode::reset));
    EXPECT_TRUE(whole.set_close_mode(CloseMode::orderly));
    whole.close();
    EXPECT_EQ(log_.text, "!");
  };
  run(talk());
}

TEST_P(SessionTest, LastWriteTakesTheCloseNotifyAlong) {
  log_.keeps = true;
  const auto talk = [this]() -> Task<> {
    Stream open = stream();
    EXPECT_TRUE(co_await open.write("a"));
    EXPECT_EQ(std::exchange(log_.text, {}), "a");
    EXPECT_TRUE(co_await open.write("b").last());
    EXPECT_EQ(std::exchange(log_.text, {}), "b!|");
    const Result<> more = co_await open.write("c");
    EXPECT_TRUE(!more && more.error() == system_error(EPIPE));
    EXPECT_TRUE(open.finish_writing());
    EXPECT_TRUE(open.finish_writing());
    EXPECT_EQ(std::exchange(log_.text, {}), ".");
    open.close();
    EXPECT_EQ(log_.text, "");
  };
  run(talk());
}

TEST_P(SessionTest, CloseNotifyFollowsTheLastPartOfALongWrite) {
  log_.keeps = true;
  const auto talk = [this]() -> Task<> {
    Stream open = stream();
    const std::string text(4 * 1024 * 1024 + 1, 'x');
    EXPECT_TRUE(co_await open.write(text).last());
    EXPECT_EQ(log_.text, text + "!|");
  };
  run(talk());
}

TEST_P(SessionTest, CloseNotifyAfterOtherWritesIsTheLastSend) {
  log_.keeps = true;
  const auto talk = [this]() -> Task<> {
    Stream finished = stream();
    EXPECT_TRUE(co_await finished.write("").last());
    EXPECT_EQ(log_.text, "") << "nothing to send";
    EXPECT_TRUE(finished.finish_writing());
    EXPECT_EQ(std::exchange(log_.text, {}), "!|.");
    Stream closed_at_once = stream();
    closed_at_once.close();
    EXPECT_EQ(log_.text, "!") << "a close with unread input would drop bytes that wait";
  };
  run(talk());
}

}  // namespace
}  // namespace weir::tls::detail::session_test
