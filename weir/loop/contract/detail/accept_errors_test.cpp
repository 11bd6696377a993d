#include "weir/loop/contract/detail/accept_errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace weir::loop::accept_errors_test {
namespace {

TEST(AcceptFailure, ClassifiesErrnoValues) {
  for (const int error : {EAGAIN, EINTR, ECANCELED}) {
    EXPECT_EQ(classify_accept(error), AcceptFailure::no_connection) << error;
  }
  for (const int error : {ECONNABORTED, ECONNRESET, EPROTO, ENOPROTOOPT, EOPNOTSUPP, EPERM,
                          ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, ENONET, ETIMEDOUT}) {
    EXPECT_EQ(classify_accept(error), AcceptFailure::connection_gone) << error;
  }
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EXPECT_EQ(classify_accept(error), AcceptFailure::exhausted) << error;
  }
  for (const int error : {EINVAL, EBADF, ENOTSOCK, EFAULT}) {
    EXPECT_EQ(classify_accept(error), AcceptFailure::broken) << error;
  }
}

TEST(AcceptFailure, PausesDoubleUpToALimit) {
  Duration pause{};
  for (const int expected : {10, 20, 40, 80, 160, 160}) {
    pause = next_accept_pause(pause);
    EXPECT_EQ(pause, std::chrono::milliseconds(expected));
  }
}

}  // namespace
}  // namespace weir::loop::accept_errors_test
