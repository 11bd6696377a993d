// Tests of the datagram operations of the simulated backend. The contract of backends is tested
// elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"
#include "weir/testing/test/probe.hpp"
#include "weir/testing/test/scripted_platform.hpp"

namespace weir::memory_datagrams_test {
namespace {

using os::Address;
using testing::ElementsAre;

class MemoryDatagramsTest : public testing::Test {
 protected:
  loop::Socket& open(const loop::DatagramOptions& options) {
    return *backend_
                .adopt(platform_.open_datagrams(options).value(),
                       {.role = loop::SocketRole::datagrams})
                .value();
  }
  bool receive(ReceiveDatagramsProbe& probe, std::span<loop::Datagram> slots) {
    probe.target = slots;
    return start(backend_, receiver_, probe);
  }
  /// Sends the texts to the receiver with one operation and returns its error.
  std::error_code send(const std::vector<std::string>& texts) {
    std::vector<loop::OutgoingDatagram> datagrams;
    for (const std::string& each : texts) datagrams.push_back({to_bytes(each), {}});
    SendDatagramsProbe probe;
    probe.datagrams = datagrams;
    probe.sent = 77;
    EXPECT_TRUE(start(backend_, sender_, probe));
    sent_ = probe.sent;
    return probe.error();
  }
  void wait() {
    backend_.wait(platform_.now());
    while (loop::Runnable* const next = ready_.pop()) next->run();
  }

  BlockPool blocks_;
  ScopedBlockPool scope_{blocks_};
  ScriptedPlatform platform_;
  ScriptedNondeterminism& script_ = platform_.script;
  loop::RunQueue ready_;
  MemoryBackend backend_{platform_, ready_};
  loop::Socket& receiver_ = open({.local = Address::loopback(53)});
  loop::Socket& sender_ = open({.peer = Address::loopback(53)});
  std::size_t sent_ = 0;
};

TEST_F(MemoryDatagramsTest, AReceiveTakesAsManyAsWait) {
  EXPECT_EQ(send({"one", "", "three"}), std::error_code());
  EXPECT_EQ(sent_, 3U);
  std::array<loop::Datagram, 4> slots;
  slots[0].segment_size = 5;
  slots[0].truncated_bytes = 5;
  ReceiveDatagramsProbe probe;
  probe.count = 9;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(probe.count, 3U);
  EXPECT_EQ(slots[0].buffer.text(), "one");
  EXPECT_EQ(slots[0].peer, platform_.local_address(sender_.descriptor).value());
  EXPECT_EQ(slots[0].segment_size, 0U);
  EXPECT_EQ(slots[0].truncated_bytes, 0U);
  EXPECT_EQ(slots[1].buffer.size(), 0U);
  EXPECT_EQ(slots[2].buffer.text(), "three");
  EXPECT_FALSE(slots[3].buffer.owns_memory());
  EXPECT_EQ(backend_.counters().bytes_sent.value(), 8U);
  EXPECT_EQ(backend_.counters().bytes_received.value(), 8U);
  EXPECT_THAT(script_.finished, ElementsAre("send datagrams 0", "receive datagrams 0"));
}

TEST_F(MemoryDatagramsTest, AReceiveTakesAtMostItsSlotsAndItsTransferSize) {
  send({"a", "b", "c", "d"});
  std::array<loop::Datagram, 2> slots;
  ReceiveDatagramsProbe probe;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(probe.count, 2U);
  EXPECT_EQ(slots[1].buffer.text(), "b");
  script_.transfer_max = 1;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(probe.count, 1U);
  EXPECT_EQ(slots[0].buffer.text(), "c");
  EXPECT_EQ(slots[1].buffer.text(), "b") << "it was not used";
}

TEST_F(MemoryDatagramsTest, BuffersThatAreLargeEnoughAreUsedAgain) {
  send({"first", "second", "third"});
  std::array<loop::Datagram, 1> slots;
  ReceiveDatagramsProbe probe;
  probe.bytes_max = 100;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(slots[0].buffer.capacity(), 100U);
  const std::byte* const block = slots[0].buffer.data();
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(slots[0].buffer.data(), block);
  EXPECT_EQ(slots[0].buffer.text(), "second");
  probe.bytes_max = 101;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(slots[0].buffer.capacity(), 101U);
  EXPECT_EQ(slots[0].buffer.text(), "third");
}

TEST_F(MemoryDatagramsTest, WhatDoesNotFitIsTruncated) {
  send({"exact", "longer!"});
  std::array<loop::Datagram, 2> slots;
  ReceiveDatagramsProbe probe;
  probe.bytes_max = 5;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_EQ(slots[0].truncated_bytes, 0U);
  EXPECT_EQ(slots[1].buffer.text(), "longe");
  EXPECT_EQ(slots[1].truncated_bytes, 2U);
  EXPECT_EQ(backend_.counters().bytes_received.value(), 10U);
}

TEST_F(MemoryDatagramsTest, AWaitingReceiveHoldsNoBufferAndIsFinishedByAWait) {
  send({"first"});
  std::array<loop::Datagram, 2> slots;
  ReceiveDatagramsProbe probe;
  ASSERT_TRUE(receive(probe, slots));
  EXPECT_FALSE(receive(probe, slots));
  EXPECT_EQ(probe.count, 0U);
  EXPECT_FALSE(slots[0].buffer.owns_memory());
  EXPECT_EQ(blocks_.blocks_in_use(), 0U);
  EXPECT_EQ(backend_.pending(), "1 receive");
  EXPECT_FALSE(backend_.has_work());
  send({"second"});
  EXPECT_TRUE(backend_.has_work());
  wait();
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(slots[0].buffer.text(), "second");
  EXPECT_EQ(backend_.pending(), "");
  EXPECT_FALSE(backend_.has_work());
  EXPECT_EQ(script_.finished.back(), "receive datagrams 0");
  EXPECT_EQ(script_.finished.size(), 4U);
}

TEST_F(MemoryDatagramsTest, AWaitingReceiveTakesAllDatagramsThatComeBeforeTheWait) {
  std::array<loop::Datagram, 4> slots;
  ReceiveDatagramsProbe probe;
  EXPECT_FALSE(receive(probe, slots));
  send({"one"});
  send({"two", "three"});
  wait();
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(probe.count, 3U);
  EXPECT_EQ(slots[0].buffer.text(), "one");
  EXPECT_EQ(slots[2].buffer.text(), "three");
  EXPECT_FALSE(backend_.has_work());
}

TEST_F(MemoryDatagramsTest, ADeferredReceiveFinishesInAWait) {
  send({"text"});
  EXPECT_FALSE(backend_.has_work()) << "no receive waits";
  script_.immediate = false;
  std::array<loop::Datagram, 1> slots;
  ReceiveDatagramsProbe probe;
  EXPECT_FALSE(receive(probe, slots));
  EXPECT_TRUE(backend_.has_work());
  wait();
  EXPECT_EQ(slots[0].buffer.text(), "text");
}

TEST_F(MemoryDatagramsTest, ACancelledReceiveThatCouldFinishMayDoEither) {
  std::array<loop::Datagram, 1> slots;
  for (const bool completes : {false, true}) {
    script_.completes_cancelled = completes;
    script_.immediate = true;
    send({"text"});
    script_.immediate = false;
    ReceiveDatagramsProbe probe;
    EXPECT_FALSE(receive(probe, slots));
    backend_.cancel(probe);
    wait();
    ASSERT_TRUE(probe.done());
    script_.immediate = true;
    if (!completes) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      ASSERT_TRUE(receive(probe, slots)) << "no datagram is lost";
    }
    EXPECT_TRUE(probe.succeeded());
    EXPECT_EQ(slots[0].buffer.text(), "text");
  }
  ReceiveDatagramsProbe idle;
  EXPECT_FALSE(receive(idle, slots));
  backend_.cancel(idle);
  wait();
  EXPECT_EQ(idle.error(), Errc::cancelled);
  EXPECT_EQ(script_.finished.back(),
            "receive datagrams 0, " + make_error_code(Errc::cancelled).message());
}

TEST_F(MemoryDatagramsTest, ErrorsAreReportedOnce) {
  backend_.close(receiver_);
  EXPECT_EQ(send({"a", "b"}), system_error(ECONNREFUSED));
  EXPECT_EQ(sent_, 1U) << "the error of the first one ends the operation";
  EXPECT_EQ(send({"a"}), std::error_code());
  std::array<loop::Datagram, 1> slots;
  ReceiveDatagramsProbe probe;
  probe.target = slots;
  ASSERT_TRUE(start(backend_, sender_, probe));
  EXPECT_EQ(probe.error(), system_error(ECONNREFUSED));
  EXPECT_FALSE(start(backend_, sender_, probe));
  EXPECT_EQ(send({"a"}), std::error_code());
  wait();
  EXPECT_EQ(probe.error(), system_error(ECONNREFUSED)) << "it ends a waiting receive";
  EXPECT_EQ(probe.count, 0U);
  EXPECT_EQ(backend_.counters().bytes_sent.value(), 3U);
}

TEST_F(MemoryDatagramsTest, AClosedSocketGivesItsDescriptorBack) {
  EXPECT_EQ(platform_.open_descriptors(), 2U);
  backend_.close(receiver_);
  EXPECT_EQ(platform_.open_descriptors(), 1U);
  EXPECT_TRUE(platform_.open_datagrams({.local = Address::loopback(53), .require_unused = true}));
  loop::Descriptor stream = platform_.open_stream(Address::loopback(80)).value();
  EXPECT_EQ(backend_.adopt(std::move(stream), {.role = loop::SocketRole::datagrams}).error(),
            system_error(EBADF));
  EXPECT_EQ(platform_.open_descriptors(), 1U);
}

}  // namespace
}  // namespace weir::memory_datagrams_test
