// Tests that the constants agree with the installed headers, if these define them.
#include "weir/os/detail/io/uring_constants.hpp"

#include <gtest/gtest.h>
#include <linux/io_uring.h>

#include <cstddef>

namespace weir::os::uring::uring_constants_test {
namespace {

#ifdef IORING_SETUP_NO_SQARRAY
static_assert(setup_no_sq_array == IORING_SETUP_NO_SQARRAY);
#endif
#ifdef IORING_FEAT_REG_REG_RING
static_assert(feature_register_by_registered_ring == IORING_FEAT_REG_REG_RING);
#endif
#ifdef IORING_FEAT_RECVSEND_BUNDLE
static_assert(feature_receive_send_bundle == IORING_FEAT_RECVSEND_BUNDLE);
static_assert(receive_send_bundle == IORING_RECVSEND_BUNDLE);
static_assert(accept_poll_first == IORING_ACCEPT_POLL_FIRST);
#endif
#ifdef IORING_FEAT_MIN_TIMEOUT
static_assert(feature_wait_min == IORING_FEAT_MIN_TIMEOUT);
static_assert(enter_absolute_timer == IORING_ENTER_ABS_TIMER);
static_assert(completion_buffer_more == IORING_CQE_F_BUF_MORE);
static_assert(buffer_ring_incremental == IOU_PBUF_RING_INC);
#endif
#ifdef IORING_FEAT_NO_IOWAIT
static_assert(feature_no_io_wait == IORING_FEAT_NO_IOWAIT);
static_assert(enter_no_io_wait == IORING_ENTER_NO_IOWAIT);
#endif
#ifdef IORING_TIMEOUT_MULTISHOT
static_assert(timeout_multishot == IORING_TIMEOUT_MULTISHOT);
#endif
#ifdef IORING_MSG_RING_FLAGS_PASS
static_assert(message_pass_flags == IORING_MSG_RING_FLAGS_PASS);
#endif
#ifdef IORING_ASYNC_CANCEL_OP
static_assert(cancel_by_user_data == IORING_ASYNC_CANCEL_USERDATA);
static_assert(cancel_by_operation == IORING_ASYNC_CANCEL_OP);
#endif

TEST(UringConstants, ContinueWhereTheHeadersStop) {
  // Linux 6.1 defines all lower values, so each constant is the next free bit or number there.
  EXPECT_EQ(receive_send_bundle, IORING_SEND_ZC_REPORT_USAGE << 1);
  EXPECT_EQ(completion_buffer_more, IORING_CQE_F_NOTIF << 1);
  EXPECT_EQ(enter_absolute_timer, IORING_ENTER_REGISTERED_RING << 1);
  EXPECT_EQ(feature_register_by_registered_ring, IORING_FEAT_LINKED_FILE << 1);
  EXPECT_EQ(timeout_multishot, IORING_TIMEOUT_ETIME_SUCCESS << 1);
  EXPECT_EQ(operation_read_multishot, IORING_OP_SENDMSG_ZC + 1);
  EXPECT_EQ(cancel_by_user_data, IORING_ASYNC_CANCEL_FD_FIXED << 1);
  EXPECT_EQ(message_pass_flags, IORING_MSG_RING_CQE_SKIP << 1);
  // Linux 6.1 has padding of the same size and offset as the flags of newer kernels.
  EXPECT_EQ(offsetof(io_uring_buf_reg, bgid) + sizeof(__u16), 14u);
  EXPECT_EQ(sizeof(io_uring_buf_reg), 40u);
}

}  // namespace
}  // namespace weir::os::uring::uring_constants_test
