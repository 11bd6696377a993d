// HandlerService: the service that answers one route of a router, for a handler that takes
// services.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"

namespace weir::inject {

/// Describes a per-core service whose dependencies are the services that a route's handler takes.
/// An instance registers the route, so the rules of services and their routes apply to handlers.
/// Threads: const members on any thread.
/// Lifetime: outlives the graph that contains its input().
class HandlerService {
 public:
  explicit HandlerService(http::UnboundRoute route);
  HandlerService(const HandlerService&) = delete;
  HandlerService& operator=(const HandlerService&) = delete;

  RegistrationInput input() const;

 private:
  static Result<> make(void* memory, const void* factory, void* const* arguments);

  http::UnboundRoute route_;
  std::string name_;  // "POST /users/{user}"
  Type type_;
  std::array<ProvidedType, 1> provided_;
  std::vector<Parameter> parameters_;  // ServiceRoutes&, then the services
  TypeDescriptor descriptor_;
};

}  // namespace weir::inject
