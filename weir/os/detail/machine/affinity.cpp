// CPU masks of any size, because a large machine has more CPUs than cpu_set_t holds.
#include "weir/os/detail/machine/affinity.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <string>

namespace weir::os {
namespace {

using Word = unsigned long;
constexpr std::size_t word_bits = sizeof(Word) * CHAR_BIT;
constexpr std::size_t words_max = 65536 / word_bits;

cpu_set_t* as_set(std::vector<Word>& mask) {
  return reinterpret_cast<cpu_set_t*>(mask.data());
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (std::size_t words = 1024 / word_bits; words <= words_max; words *= 2) {
    std::vector<Word> mask(words);
    // EINVAL means that the kernel's own mask is longer.
    if (::sched_getaffinity(0, words * sizeof(Word), as_set(mask)) < 0) {
      if (errno == EINVAL) continue;
      return cpus;
    }
    for (std::size_t bit = 0; bit < words * word_bits; ++bit) {
      if ((mask[bit / word_bits] >> (bit % word_bits) & 1) != 0) {
        cpus.push_back(static_cast<int>(bit));
      }
    }
    return cpus;
  }
  return cpus;
}

Result<> pin_current_thread(int cpu) {
  return set_allowed_cpus({cpu});
}

Result<> set_allowed_cpus(const std::vector<int>& cpus) {
  std::vector<Word> mask(words_max);
  for (const int cpu : cpus) {
    const auto bit = static_cast<std::size_t>(cpu);
    if (cpu < 0 || bit >= words_max * word_bits) return fail(system_error(EINVAL));
    mask[bit / word_bits] |= Word{1} << (bit % word_bits);
  }
  if (::sched_setaffinity(0, mask.size() * sizeof(Word), as_set(mask)) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

void set_current_thread_name(std::string_view name) {
  constexpr std::size_t bytes_max = 15;
  const std::string cut(name.substr(0, bytes_max));
  ::pthread_setname_np(::pthread_self(), cut.c_str());
}

}  // namespace weir::os
