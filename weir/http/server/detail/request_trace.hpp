// One request as the unit of work that its handler's tasks work for: its id in logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/loop/work_unit.hpp"

namespace weir::http {

class ServerCore;
struct Route;

/// Of an exchange, for one request after the other. It costs a request one store: the id is made of
/// what is there anyway, when somebody asks for it.
/// Threads: the server's; id() any, while a handler runs, whose head no longer moves.
class RequestUnit final : public WorkUnit {
 public:
  RequestUnit(const ServerCore& server, const RequestHead& head) noexcept
      : server_(server), head_(head) {}

  /// A request that no other of this server's is, on this core, has that number.
  void begin(std::uint64_t number) noexcept { number_ = number; }
  void found(const Route* route) noexcept { route_ = route; }

  std::string_view kind() const noexcept override { return "request"; }
  /// What the client says in the field that the router trusts; else "k3v90x-0-57": when this server
  /// began, on which core, and its how many-eth request this is.
  std::string_view id(IdRoom room) const noexcept override;
  const void* of() const noexcept override { return route_; }

 private:
  const ServerCore& server_;
  const RequestHead& head_;
  const Route* route_ = nullptr;
  std::uint64_t number_ = 0;
};

/// What requests of a server that begins now on that core have before their numbers: two servers of
/// one service, one after the other or beside each other, give different ids.
std::string request_id_prefix(WallTime now, unsigned core);

/// Whether a text that a client sent can be the id of its request: 1 to 128 visible characters, but
/// for quotation marks and backslashes.
bool is_request_id(std::string_view text) noexcept;

}  // namespace weir::http
