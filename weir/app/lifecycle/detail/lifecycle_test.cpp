// Tests of the queue between cores, and of the failures of a lifecycle.
#include "weir/app/lifecycle/detail/lifecycle.hpp"

#include <vector>

#include "weir/testing/test/loop_fixture.hpp"

namespace weir::inject {
namespace {

using Values = std::vector<int>;

class BatchQueueTest : public LoopTest {
 protected:
  static void receive(void* batches, Values& batch) {
    static_cast<std::vector<Values>*>(batches)->push_back(batch);
  }
  std::vector<Values> batches_;
};

TEST_F(BatchQueueTest, ValuesThatWaitArriveTogetherInOrder) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  Values first{1, 2};
  Values second{3, 4, 5};
  queue.send(first);
  queue.send(second);
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(batches_.empty()) << "not before the loop's next turn";
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(batches_, (std::vector<Values>{{1, 2, 3, 4, 5}}));
}

TEST_F(BatchQueueTest, LaterValuesArriveInAnotherBatch) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  for (int i = 1; i <= 3; ++i) {
    Values one{i};
    queue.send(one);
    platform_.run_until_idle(*loop_);
  }
  EXPECT_EQ(batches_, (std::vector<Values>{{1}, {2}, {3}}));
}

TEST_F(BatchQueueTest, AnEmptyBatchWakesNothing) {
  BatchQueue<int> queue(*loop_, &receive, &batches_);
  Values none;
  queue.send(none);
  platform_.run_until_idle(*loop_);
  EXPECT_TRUE(batches_.empty());
}

TEST(LifecycleFailure, OneThatARequesterSawConcernsOnlyChangesOfItsService) {
  Lifecycle::Failure failure{};
  failure.service = ServiceId(1, 1);
  EXPECT_TRUE(failure.affects(ServiceId()));
  EXPECT_TRUE(failure.affects(ServiceId(2, 1)));
  failure.seen_by_requester = true;
  EXPECT_FALSE(failure.affects(ServiceId()));
  EXPECT_FALSE(failure.affects(ServiceId(2, 1)));
  EXPECT_TRUE(failure.affects(ServiceId(1, 1)));
}

}  // namespace
}  // namespace weir::inject
