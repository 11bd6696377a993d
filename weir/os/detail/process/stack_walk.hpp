// Walks the frames of a stack by their frame pointers, also inside of a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::os {

/// The memory of a thread's stack, from `low` up to and without `high`.
struct StackBounds {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
};

/// Returns the stack of the calling thread; an empty one if the C library does not know it.
StackBounds stack_of_this_thread() noexcept;

/// The registers of an interrupted function that describe its stack.
struct StackRegisters {
  std::uintptr_t instruction = 0;  ///< address of the next instruction
  std::uintptr_t frame = 0;        ///< frame pointer
  std::uintptr_t stack = 0;        ///< stack pointer
};

/// Returns the registers in the third argument of a signal handler (sigaction(2)). They are zero on
/// a machine other than x86-64 and AArch64.
StackRegisters interrupted_registers(const void* signal_context) noexcept;

/// Stores the addresses of the functions on a stack in `frames`, the interrupted one first. The
/// others are return addresses, which lie behind the calls. It follows the chain of frame pointers,
/// which -fno-omit-frame-pointer keeps. A function without a frame pointer may hide its caller.
///
/// It reads only memory between the stack pointer and the high end of the stack, so no frame
/// pointer can make it fail. Each frame pointer is aligned and above the one before.
/// Returns: the number of addresses.
/// Threads: any, also in a signal handler.
std::size_t walk_frames(const StackRegisters& registers, const StackBounds& stack,
                        std::span<std::uintptr_t> frames) noexcept;

}  // namespace weir::os
