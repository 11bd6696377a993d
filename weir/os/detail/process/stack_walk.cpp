#include "weir/os/detail/process/stack_walk.hpp"

#include <pthread.h>
#include <ucontext.h>

namespace weir::os {

StackBounds stack_of_this_thread() noexcept {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  const bool known = ::pthread_attr_getstack(&attributes, &low, &size) == 0;
  ::pthread_attr_destroy(&attributes);
  if (!known) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  return {begin, begin + size};
}

#if defined(__x86_64__)
StackRegisters interrupted_registers(const void* signal_context) noexcept {
  const auto& registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs;
  return {static_cast<std::uintptr_t>(registers[REG_RIP]),
          static_cast<std::uintptr_t>(registers[REG_RBP]),
          static_cast<std::uintptr_t>(registers[REG_RSP])};
}
#elif defined(__aarch64__)
StackRegisters interrupted_registers(const void* signal_context) noexcept {
  const auto& registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
  return {registers.pc, registers.regs[29], registers.sp};
}
#else
StackRegisters interrupted_registers(const void*) noexcept {
  return {};
}
#endif

// The address sanitizer marks parts of a stack as unreadable, which this function reads on purpose.
// The loop has no calls, because the handler of a signal may run it at any time.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) std::size_t walk_frames(
    const StackRegisters& registers, const StackBounds& stack,
    std::span<std::uintptr_t> frames) noexcept {
  constexpr std::uintptr_t lowest_code = 4096;  // the first page is never mapped
  constexpr std::uintptr_t frame_bytes = 2 * sizeof(std::uintptr_t);
  const std::size_t frames_max = frames.size();
  std::uintptr_t* const into = frames.data();
  if (frames_max == 0 || registers.instruction < lowest_code) return 0;
  into[0] = registers.instruction;
  std::size_t count = 1;
  if (registers.stack < stack.low || registers.stack >= stack.high) return count;
  std::uintptr_t lowest = registers.stack;
  std::uintptr_t frame = registers.frame;
  while (count < frames_max) {
    const bool readable = frame >= lowest && frame < stack.high &&
                          stack.high - frame >= frame_bytes && frame % sizeof frame == 0;
    if (!readable) break;
    const auto* const record = reinterpret_cast<const std::uintptr_t*>(frame);
    if (record[1] < lowest_code) break;
    into[count++] = record[1];
    lowest = frame + frame_bytes;
    frame = record[0];
  }
  return count;
}

}  // namespace weir::os
