// Tests of a listening socket that several loops or processes have open.
#include "weir/loop/detail/listen/shared_listener.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::shared_listener_test {
namespace {

/// Records the paths that it removes.
class PathPlatform final : public MemoryPlatform {
 public:
  void remove_local_path(const os::Address& bound) noexcept override { removed.push_back(bound); }
  std::vector<os::Address> removed;
};

class SharedListenerTest : public testing::Test {
 protected:
  SharedListener make() {
    return {platform_, platform_.listen(address_, {.reuse_port = false}).value(), address_};
  }
  const os::Address address_ = os::Address::local("name").value();
  PathPlatform platform_;
};

TEST_F(SharedListenerTest, BelongsToThisProcessAlone) {
  const SharedListener listener = make();
  EXPECT_EQ(listener.bound(), address_);
  EXPECT_GE(listener.descriptor(), 0);
  EXPECT_FALSE(listener.stays_open_elsewhere());
  EXPECT_FALSE(listener.externally_owned());
  EXPECT_FALSE(listener.peer_waits_for_accept());
  EXPECT_FALSE(listener.accepting());
}

TEST_F(SharedListenerTest, SharesDescriptorsOfOneSocket) {
  Descriptor shared;
  {
    SharedListener listener = make();
    shared = listener.share().value();
    EXPECT_NE(shared.value(), listener.descriptor());
    platform_.set_descriptors_max(platform_.open_descriptors());
    EXPECT_EQ(listener.share().error(), std::errc::too_many_files_open);
  }
  EXPECT_EQ(platform_.open_descriptors(), 1U);
  EXPECT_EQ(platform_.local_address(shared.value()).value(), address_) << "it still listens";
}

TEST_F(SharedListenerTest, RemovesItsPathUnlessTheSocketStaysOpenElsewhere) {
  {
    const SharedListener listener = make();
  }
  EXPECT_EQ(platform_.removed, std::vector<os::Address>{address_});
  {
    SharedListener listener = make();
    listener.set_stays_open_elsewhere(true);
    EXPECT_TRUE(listener.stays_open_elsewhere());
  }
  EXPECT_EQ(platform_.removed.size(), 1U) << "another process listens there";
  {
    SharedListener listener = make();
    listener.set_stays_open_elsewhere(true);
    listener.set_stays_open_elsewhere(false);
    EXPECT_FALSE(listener.stays_open_elsewhere());
  }
  EXPECT_EQ(platform_.removed.size(), 2U);
}

TEST_F(SharedListenerTest, ASocketOfAServiceManagerStaysOpenElsewhere) {
  {
    SharedListener listener = make();
    listener.set_externally_owned();
    EXPECT_TRUE(listener.externally_owned());
    EXPECT_TRUE(listener.stays_open_elsewhere());
    EXPECT_FALSE(listener.peer_waits_for_accept());
  }
  EXPECT_TRUE(platform_.removed.empty());
}

TEST_F(SharedListenerTest, ASocketOfAnOlderProcessStaysOpenElsewhere) {
  {
    SharedListener listener = make();
    listener.set_peer_waits_for_accept();
    EXPECT_TRUE(listener.peer_waits_for_accept());
    EXPECT_TRUE(listener.stays_open_elsewhere());
    EXPECT_FALSE(listener.externally_owned());
  }
  EXPECT_TRUE(platform_.removed.empty());
}

TEST_F(SharedListenerTest, ReportsWhenTheLastLoopStopsAccepting) {
  SharedListener listener = make();
  int stopped = 0;
  listener.on_stopped = [&] {
    EXPECT_FALSE(listener.accepting());
    ++stopped;
  };
  listener.begin_accepting();
  EXPECT_TRUE(listener.accepting());
  listener.begin_accepting();
  listener.end_accepting();
  EXPECT_TRUE(listener.accepting()) << "one loop is left";
  EXPECT_EQ(stopped, 0);
  listener.end_accepting();
  EXPECT_FALSE(listener.accepting());
  EXPECT_EQ(stopped, 1);
  listener.begin_accepting();
  listener.on_stopped = nullptr;
  listener.end_accepting();
  EXPECT_EQ(stopped, 1);
}

}  // namespace
}  // namespace weir::loop::shared_listener_test
