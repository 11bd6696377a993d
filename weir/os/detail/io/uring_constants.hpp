// io_uring constants that are newer than the headers of Linux 6.1, with which Weir is built. The
// comment of each names the first kernel with it. The caller checks the kernel's features or probe
// before it uses one.
#pragma once

#include <cstdint>

/// The constants have their own names, because newer headers define the usual ones as macros.
namespace weir::os::uring {

// io_uring_setup(2) flags, io_uring_params::flags.
/// Linux 6.6: no indirection array in the submission queue.
inline constexpr std::uint32_t setup_no_sq_array = 1u << 16;

// io_uring_params::features.
/// Linux 6.3: every io_uring_register(2) call takes a registered ring.
inline constexpr std::uint32_t feature_register_by_registered_ring = 1u << 13;
/// Linux 6.10: `receive_send_bundle`, and sends that take provided buffers.
inline constexpr std::uint32_t feature_receive_send_bundle = 1u << 14;
/// Linux 6.12: io_uring_getevents_arg::pad is the shortest wait in microseconds. It ends earlier
/// only if the requested number of completions has arrived.
inline constexpr std::uint32_t feature_wait_min = 1u << 15;
/// Linux 6.15: `enter_no_io_wait`.
inline constexpr std::uint32_t feature_no_io_wait = 1u << 17;

// io_uring_enter(2) flags. GETEVENTS, EXT_ARG and REGISTERED_RING are older, in the headers.
/// Linux 6.12: the timeout in the extended argument is absolute.
inline constexpr std::uint32_t enter_absolute_timer = 1u << 5;
/// Linux 6.15: waiting does not count as I/O wait in the statistics (and the CPU frequency).
inline constexpr std::uint32_t enter_no_io_wait = 1u << 7;

// Flags of send and receive, io_uring_sqe::ioprio.
/// Linux 6.10, with IOSQE_BUFFER_SELECT: one completion for all provided buffers that the data
/// fills. They are contiguous and begin with the buffer ID in the completion's flags.
inline constexpr std::uint16_t receive_send_bundle = 1u << 4;

// Flags of accept, io_uring_sqe::ioprio.
/// Linux 6.10: wait for readiness before the first attempt to accept.
inline constexpr std::uint16_t accept_poll_first = 1u << 2;

// Flags of timeout, io_uring_sqe::timeout_flags.
/// Linux 6.4: the timeout fires repeatedly.
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
/// Linux 6.12, with `buffer_ring_incremental`: more data will follow in this buffer.
inline constexpr std::uint32_t completion_buffer_more = 1u << 4;

// Provided-buffer rings: flags in io_uring_buf_reg, in the field that Linux 6.1 names `pad`.
/// Linux 6.4: the kernel allocates the ring, the program maps it.
inline constexpr std::uint16_t buffer_ring_mapped = 1u << 0;
/// Linux 6.12: a buffer is consumed in parts and not returned after the first bytes.
inline constexpr std::uint16_t buffer_ring_incremental = 1u << 1;

// Operations, io_uring_sqe::opcode.
/// Linux 6.7.
inline constexpr std::uint8_t operation_read_multishot = 49;
/// Linux 6.11.
inline constexpr std::uint8_t operation_bind = 56;
/// Linux 6.11.
inline constexpr std::uint8_t operation_listen = 57;

}  // namespace weir::os::uring
