// io_uring constants newer than Linux 6.1, the headers that Weir is built with. Each says which
// kernel has it; a program asks the kernel (features, a probe) before it uses one.
#pragma once

#include <cstdint>

/// Under names of their own: newer headers define the usual ones as macros.
namespace weir::os::uring {

// io_uring_setup(2) flags, io_uring_params::flags.
/// Linux 6.6: no indirection array in the submission queue.
inline constexpr std::uint32_t setup_no_sq_array = 1u << 16;

// io_uring_params::features.
/// Linux 6.3: every io_uring_register(2) call takes a registered ring.
inline constexpr std::uint32_t feature_register_by_registered_ring = 1u << 13;
/// Linux 6.10: `receive_send_bundle`, and sends that take provided buffers.
inline constexpr std::uint32_t feature_receive_send_bundle = 1u << 14;
/// Linux 6.12: io_uring_getevents_arg::pad is the shortest wait in microseconds, which ends early
/// only when all the completions asked for are there.
inline constexpr std::uint32_t feature_wait_min = 1u << 15;
/// Linux 6.15: `enter_no_io_wait`.
inline constexpr std::uint32_t feature_no_io_wait = 1u << 17;

// io_uring_enter(2) flags. GETEVENTS, EXT_ARG and REGISTERED_RING are older, in the headers.
/// Linux 6.12: the time-out in the extended argument is absolute.
inline constexpr std::uint32_t enter_absolute_timer = 1u << 5;
/// Linux 6.15: waiting does not count as I/O wait in the statistics (and the CPU frequency).
inline constexpr std::uint32_t enter_no_io_wait = 1u << 7;

// Flags of send and receive, io_uring_sqe::ioprio.
/// Linux 6.10, with IOSQE_BUFFER_SELECT: one completion for as many provided buffers as the data
/// fills, contiguous from the buffer ID in its flags on.
inline constexpr std::uint16_t receive_send_bundle = 1u << 4;

// Flags of accept, io_uring_sqe::ioprio.
/// Linux 6.10: wait for readiness first instead of trying at once.
inline constexpr std::uint16_t accept_poll_first = 1u << 2;

// Flags of timeout, io_uring_sqe::timeout_flags.
/// Linux 6.4: fires again and again.
inline constexpr std::uint32_t timeout_multishot = 1u << 6;

// Flags of a message between rings, io_uring_sqe::msg_ring_flags.
/// Linux 6.3: the receiver's completion carries the flags in io_uring_sqe::file_index.
inline constexpr std::uint32_t message_pass_flags = 1u << 1;

// Flags of a cancellation, io_uring_sqe::cancel_flags.
/// Linux 6.6: match the user data as well as the other key.
inline constexpr std::uint32_t cancel_by_user_data = 1u << 4;
/// Linux 6.6: match the operation code in io_uring_sqe::len.
inline constexpr std::uint32_t cancel_by_operation = 1u << 5;

// Completions, io_uring_cqe::flags.
/// Linux 6.12, with `buffer_ring_incremental`: more data will follow in this same buffer.
inline constexpr std::uint32_t completion_buffer_more = 1u << 4;

// Provided-buffer rings: flags in io_uring_buf_reg, at the place that 6.1 calls `pad`.
/// Linux 6.4: the kernel allocates the ring, the program maps it.
inline constexpr std::uint16_t buffer_ring_mapped = 1u << 0;
/// Linux 6.12: a buffer is used up piece by piece, not given back after the first bytes.
inline constexpr std::uint16_t buffer_ring_incremental = 1u << 1;

// Operations, io_uring_sqe::opcode.
/// Linux 6.7.
inline constexpr std::uint8_t operation_read_multishot = 49;
/// Linux 6.11.
inline constexpr std::uint8_t operation_bind = 56;
/// Linux 6.11.
inline constexpr std::uint8_t operation_listen = 57;

}  // namespace weir::os::uring
