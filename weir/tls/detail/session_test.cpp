// Tests the session over an inner stream whose sends never wait.
#include "weir/tls/detail/session.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "weir/task/combinators.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls::detail {
namespace {

/// A stream that takes all bytes immediately and receives none.
class Sink final : public weir::Stream {
 public:
  explicit Sink(Loop& loop) noexcept : weir::Stream(loop) {}
  Sink(Sink&& other) noexcept : weir::Stream(other) {}
  Result<> finish_writing() override { return {}; }
  void close() override {}
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
    operation.finish();
    return true;
  }
  void cancel_operation(loop::Operation& operation) override {
    operation.finish(Errc::cancelled);
    loop().ready(operation);
  }
  weir::Stream* move_to(void* room) noexcept override { return new (room) Sink(std::move(*this)); }
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
    output.make_room(plain.size());
    std::memcpy(output.room().data(), plain.data(), plain.size());
    output.commit(plain.size());
    return {};
  }
  void seal_close(Buffer&) override {}
  std::error_code error() const noexcept override { return {}; }
};

class SessionTest : public TlsTest {
 protected:
  Stream stream() {
    AnyStream inner = Sink(*loop_);
    auto info = std::make_shared<const TlsInfo>();
    return Stream(make_block<Session>(std::move(inner), std::make_unique<PlainRecords>(),
                                      std::move(info), Buffer(), Buffer()));
  }
  std::uint64_t turns() const { return loop_->counters().turns.value(); }
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

}  // namespace
}  // namespace weir::tls::detail
