// Tests of the table of simulated descriptors.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir::memory_descriptors_test {
namespace {

using os::Address;

class MemoryDescriptorsTest : public testing::Test {
 protected:
  std::shared_ptr<MemoryEndpoint> listener(std::uint16_t port = 80) {
    return network_
        .listen(Address::loopback(port),
                {.backlog = 5, .reuse_port = true, .require_unused = false})
        .value();
  }
  std::shared_ptr<MemoryEndpoint> datagrams() {
    return datagram_network_.open({.local = Address::loopback(53)}, nothing_random_).value();
  }
  std::shared_ptr<MemoryEndpoint> file() {
    auto node = std::make_shared<MemoryNode>(os::FileKind::file, 0644U, disk_);
    return std::make_shared<MemoryOpenFile>(std::move(node), os::FileMode::read);
  }
  bool listens_at(std::uint16_t port) {
    MemoryStream stream(10);
    return network_.connect(stream, Address::loopback(port)) ==
           MemoryNetwork::ConnectResult::established;
  }

  Nondeterminism nothing_random_;
  MemoryNetwork network_{100, nothing_random_};
  MemoryDatagramNetwork datagram_network_;
  MemoryDisk disk_;
  MemoryDescriptors table_{4};
};

TEST_F(MemoryDescriptorsTest, NumbersBeginAfterTheStandardOnesAndTheLowestIsUsed) {
  EXPECT_EQ(table_.add(file()).value(), 3);
  EXPECT_EQ(table_.add(file()).value(), 4);
  EXPECT_EQ(table_.add(file()).value(), 5);
  EXPECT_EQ(table_.open(), 3U);
  table_.close(5);
  table_.close(3);
  table_.close(4);
  EXPECT_EQ(table_.open(), 0U);
  const auto again = file();
  EXPECT_EQ(table_.add(again).value(), 3);
  EXPECT_EQ(table_.find(3), again.get());
  EXPECT_EQ(table_.add(file()).value(), 4);
  EXPECT_EQ(table_.add(file()).value(), 5);
  EXPECT_EQ(table_.add(file()).value(), 6);
}

TEST_F(MemoryDescriptorsTest, OpensAtMostItsLimit) {
  for (int number = 0; number < 4; ++number) {
    EXPECT_FALSE(table_.full());
    ASSERT_TRUE(table_.add(file()));
  }
  EXPECT_TRUE(table_.full());
  EXPECT_EQ(table_.open_max(), 4U);
  EXPECT_EQ(table_.add(file()).error(), system_error(EMFILE));
  EXPECT_EQ(table_.duplicate(3).error(), system_error(EMFILE));
  table_.set_open_max(2);
  table_.close(6);
  EXPECT_TRUE(table_.full()) << "more descriptors are open";
  table_.close(5);
  table_.close(4);
  EXPECT_FALSE(table_.full());
}

TEST_F(MemoryDescriptorsTest, FindsOnlyTheKindThatIsOpen) {
  const int stream = table_.add(network_.open_stream()).value();
  const int listening = table_.add(listener()).value();
  const int datagram = table_.add(datagrams()).value();
  const int opened = table_.add(file()).value();
  for (const int each : {-1, 0, 2, stream, listening, datagram, opened, 7, 1000}) {
    EXPECT_EQ(table_.find(each) != nullptr, each >= 3 && each <= 6) << each;
    EXPECT_EQ(table_.stream(each) != nullptr, each == stream) << each;
    EXPECT_EQ(table_.listener(each) != nullptr, each == listening) << each;
    EXPECT_EQ(table_.datagrams(each) != nullptr, each == datagram) << each;
    EXPECT_EQ(table_.file(each) != nullptr, each == opened) << each;
  }
  std::vector<MemoryStream*> streams;
  table_.close(opened);
  table_.each_stream([&](MemoryStream& each) { streams.push_back(&each); });
  EXPECT_EQ(streams, std::vector{table_.stream(stream)});
  EXPECT_EQ(table_.find(opened), nullptr);
}

TEST_F(MemoryDescriptorsTest, DuplicatesShareTheEndpoint) {
  const int first = table_.add(listener()).value();
  const int second = table_.duplicate(first).value();
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.find(first), table_.find(second));
  EXPECT_EQ(table_.duplicate(77).error(), system_error(EBADF));
  table_.close(first);
  EXPECT_TRUE(listens_at(80)) << "it listens until both are closed";
  EXPECT_TRUE(table_.listens());
  EXPECT_EQ(table_.share(second).get(), table_.find(second));
  table_.close(second);
  EXPECT_FALSE(listens_at(80));
  EXPECT_FALSE(table_.listens());
}

TEST_F(MemoryDescriptorsTest, OnlyAListenerListens) {
  ASSERT_TRUE(table_.add(file()));
  ASSERT_TRUE(table_.add(network_.open_stream()));
  EXPECT_FALSE(table_.listens());
  ASSERT_TRUE(table_.add(listener()));
  EXPECT_TRUE(table_.listens());
}

TEST_F(MemoryDescriptorsTest, TheDeathOfAProcessClosesWhatItAloneHas) {
  MemoryDescriptors other(10);
  const auto peer_listener = network_.listen(
      Address::loopback(90), {.backlog = 5, .reuse_port = true, .require_unused = false});
  auto stream = network_.open_stream();
  network_.connect(*stream, Address::loopback(90));
  const auto accepted = (*peer_listener)->take();
  ASSERT_TRUE(table_.add(std::move(stream)));
  const int alone = table_.add(listener(80)).value();
  ASSERT_TRUE(table_.duplicate(alone));
  ASSERT_TRUE(table_.add(datagrams()));
  MemoryDescriptors shared(4);
  const int number = shared.add(listener(81)).value();
  ASSERT_TRUE(other.add(shared.share(number)));
  table_.close_on_kill();
  shared.close_on_kill();
  EXPECT_EQ(accepted->receivable(), Errc::end_of_stream);
  EXPECT_FALSE(listens_at(80));
  EXPECT_TRUE(listens_at(81)) << "another process has it too";
  EXPECT_TRUE(datagram_network_.open({.local = Address::loopback(53)}, nothing_random_));
  EXPECT_EQ(table_.open(), 4U) << "the descriptors must still be closed";
}

}  // namespace
}  // namespace weir::memory_descriptors_test
