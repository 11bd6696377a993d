// Tests of the memory bound of a client.
#include "weir/http/client/client_limits.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace weir::http {
namespace {

TEST(ClientMemoryBound, CountsConnectionsAndWaitingRequests) {
  ClientLimits limits;
  limits.connections_max = 10;
  limits.waiting_max = 0;
  const ClientMemoryBound ten = memory_bound(limits);
  EXPECT_EQ(ten.total, 10 * ten.connection);
  EXPECT_GT(ten.connection, 3 * limits.body_max);
  EXPECT_LT(ten.connection, 4 * limits.body_max);
  EXPECT_LT(ten.idle_connection, 512U * 1024);
  limits.waiting_max = 5;
  EXPECT_EQ(memory_bound(limits).total, ten.total + 5 * ten.waiting_request);
}

TEST(ClientMemoryBound, EachSizeLimitCounts) {
  ClientLimits limits;
  limits.body_max = 0;
  const std::uint64_t least = memory_bound(limits).connection;
  EXPECT_LT(least, 2U * 1024 * 1024);
  limits.response.head.headers_bytes_max += 1000;
  const std::uint64_t more = memory_bound(limits).connection;
  EXPECT_GT(more, least);
  limits.response.chunks.trailers_bytes_max += 1000;
  EXPECT_GT(memory_bound(limits).connection, more);
}

TEST(ClientMemoryBound, ABoundThatDoesNotFitIsTheLargestNumber) {
  ClientLimits limits;
  limits.body_max = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(memory_bound(limits).total, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace weir::http
