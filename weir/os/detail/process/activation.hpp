// Socket activation: sockets that a service manager opened for this process (sd_listen_fds(3)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"

namespace weir::os {

/// The values of the service manager's environment variables; empty: not set.
struct ActivationEnvironment {
  std::string_view pid;    ///< LISTEN_PID: the id of the intended process
  std::string_view count;  ///< LISTEN_FDS: the number of descriptors 3, 4, ...
  std::string_view names;  ///< LISTEN_FDNAMES: their names, separated by colons
};

struct ActivatedDescriptor {
  int descriptor;
  std::string name;  ///< "unknown" if the manager gives none, as in sd_listen_fds_with_names(3)
};

/// Returns the descriptors that the variables pass to the process `own_pid`. The result is empty if
/// they are not set or are for another process, such as a parent. The call does not access any
/// descriptor.
/// Errors: Errc::bad_input for values that no service manager writes.
Result<std::vector<ActivatedDescriptor>> parse_activation(const ActivationEnvironment& variables,
                                                          int own_pid);

/// Returns the id of this process.
int process_id() noexcept;

}  // namespace weir::os
