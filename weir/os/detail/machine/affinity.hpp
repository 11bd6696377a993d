// CPU affinity and name of the calling thread.
#pragma once

#include <string_view>
#include <vector>

#include "weir/base/result.hpp"

namespace weir::os {

/// Returns the CPUs on which the calling thread may run, ascending. The result is empty on an
/// error.
std::vector<int> allowed_cpus();

/// Pins the calling thread to `cpu`.
/// Errors: EINVAL if this process may not use the CPU.
Result<> pin_current_thread(int cpu);

/// Sets the CPUs on which the calling thread may run, such as an earlier result of allowed_cpus().
/// Errors: EINVAL if this process may use none of the CPUs, or a number is out of range.
Result<> set_allowed_cpus(const std::vector<int>& cpus);

/// Names the calling thread for ps, top and debuggers. The name is cut to 15 bytes.
void set_current_thread_name(std::string_view name);

}  // namespace weir::os
