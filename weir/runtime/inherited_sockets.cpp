#include "weir/runtime/inherited_sockets.hpp"

#include <string_view>
#include <utility>

#include "weir/os/activation.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {
namespace {

/// The value of a variable; empty where it is not set.
std::string_view value_of(std::string_view name, const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<InheritedSocket>> inherited_sockets_from_environment(
    const char* const* environment) {
  const os::ActivationVariables variables{.pid = value_of("LISTEN_PID", environment),
                                          .count = value_of("LISTEN_FDS", environment),
                                          .names = value_of("LISTEN_FDNAMES", environment)};
  auto passed = os::read_activation(variables, os::own_process());
  if (!passed) return fail(passed.error());
  std::vector<InheritedSocket> sockets;
  for (os::PassedDescriptor& each : *passed) {
    // Not for the programs that this one starts.
    auto done = os::set_on_exec(each.descriptor, os::OnExec::close);
    if (done) done = os::check_listens(each.descriptor);
    if (!done) return fail(done.error());
    const auto endpoint = os::local_address(each.descriptor);
    if (!endpoint) return fail(endpoint.error());
    sockets.push_back({each.descriptor, std::move(each.name), *endpoint});
  }
  return sockets;
}

}  // namespace weir
