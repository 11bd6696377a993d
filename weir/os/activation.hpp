// Sockets that a service manager has opened before it started this process: sd_listen_fds(3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"

namespace weir::os {

/// The environment variables that tell of them, in the manager's words; empty: not set.
struct ActivationVariables {
  std::string_view pid;    ///< LISTEN_PID: for which process
  std::string_view count;  ///< LISTEN_FDS: descriptors 3, 4, ...
  std::string_view names;  ///< LISTEN_FDNAMES: of each, separated by colons
};

struct PassedDescriptor {
  int descriptor;
  std::string name;  ///< "unknown" where the manager gives none, as sd_listen_fds_with_names(3)
};

/// What the variables tell the process `own_pid`: nothing, where they are not set or meant for
/// another process, such as a parent. Touches no descriptor.
/// Errors: Errc::bad_input for what a manager does not write.
Result<std::vector<PassedDescriptor>> read_activation(const ActivationVariables& variables,
                                                      int own_pid);

/// The id of this process.
int own_process() noexcept;

}  // namespace weir::os
