// Which CPUs a thread may run on, and what the thread is called.
#pragma once

#include <string_view>
#include <vector>

#include "weir/base/result.hpp"

namespace weir::os {

/// The CPUs that the calling thread may run on now, ascending; empty if the kernel does not tell.
std::vector<int> allowed_cpus();

/// Keeps the calling thread on `cpu` from now on. EINVAL when this process may not use that CPU.
Result<> pin_this_thread(int cpu);

/// Lets the calling thread run on `cpus` again, as allowed_cpus() gave them.
Result<> allow_cpus(const std::vector<int>& cpus);

/// Names the calling thread for ps, top and debuggers. Cut to 15 bytes.
void name_this_thread(std::string_view name);

}  // namespace weir::os
