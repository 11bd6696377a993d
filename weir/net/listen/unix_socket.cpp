#include "weir/net/listen/unix_socket.hpp"

#include <utility>

namespace weir::unix_socket {

Task<Result<Listener>> listen(std::string name) {
  WEIR_CO_TRY(auto address, os::Address::local(name));
  co_return co_await tcp::listen(address);
}

Task<Result<Stream>> connect(std::string name, IoOptions options) {
  WEIR_CO_TRY(auto address, os::Address::local(name));
  co_return co_await tcp::connect(address, options);
}

}  // namespace weir::unix_socket
