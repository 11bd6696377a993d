// Fixtures for tests with few free file descriptors, or with descriptor 0 free.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace weir::os {

/// A DescriptorLimit leaves exactly `count` free descriptors to this process while it exists.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(std::size_t count) {
    std::vector<int> taken;
    while (taken.size() <= count) taken.push_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    const int first_excluded = taken.back();
    for (const int each : taken) ::close(each);
    if (first_excluded < 0 || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) {
      throw std::runtime_error("cannot count descriptors");
    }
    const rlimit fewer{static_cast<rlim_t>(first_excluded), before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &fewer) != 0) throw std::runtime_error("cannot set the limit");
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// A FreeDescriptorZero closes standard input while it exists. The kernel then uses the number 0
/// for the next descriptor.
class FreeDescriptorZero {
 public:
  FreeDescriptorZero() : kept_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (kept_ < 0) throw std::runtime_error("standard input is closed");
    ::close(STDIN_FILENO);
  }
  FreeDescriptorZero(const FreeDescriptorZero&) = delete;
  FreeDescriptorZero& operator=(const FreeDescriptorZero&) = delete;
  ~FreeDescriptorZero() {
    ::dup2(kept_, STDIN_FILENO);
    ::close(kept_);
  }

 private:
  int kept_;
};

/// Returns the lowest free descriptor.
inline int lowest_free_descriptor() {
  const int number = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  ::close(number);
  return number;
}

}  // namespace weir::os
