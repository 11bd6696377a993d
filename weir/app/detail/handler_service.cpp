#include "weir/app/detail/handler_service.hpp"

#include <span>
#include <utility>

#include "weir/http/router/service_routes.hpp"

namespace weir::inject {

HandlerService::HandlerService(http::UnboundRoute route)
    : route_(std::move(route)),
      name_(route_.name()),
      type_{name_},
      provided_{ProvidedType{&type_, [](void* memory) { return memory; }}},
      parameters_{parameter_of<http::ServiceRoutes&>()},
      descriptor_{} {
  for (const http::HandlerReference& each : route_.handler.references()) {
    if (route_.around.sets(each)) continue;
    parameters_.push_back({each.type, nullptr, DependencyKind::required, each.writable});
  }
  descriptor_ = {.type = &type_,
                 .provided = provided_,
                 .parameters = parameters_,
                 .size = 1,
                 .alignment = 1,
                 .make = &make,
                 .destroy = [](void*) noexcept {},
                 .start = nullptr,
                 .stop = nullptr,
                 .has_owned_arguments = true,
                 .advice = "; take a body by value, and a value of middleware in a group<T>()"};
}

RegistrationInput HandlerService::input() const {
  return {&descriptor_, FactoryPtr(this, [](const void*) {})};
}

Result<> HandlerService::make(void*, const void* factory, void* const* arguments) {
  const auto& self = *static_cast<const HandlerService*>(factory);
  const std::span<void* const> services(arguments + 1, self.parameters_.size() - 1);
  static_cast<http::ServiceRoutes*>(arguments[0])->add_bound(self.route_, services);
  return {};
}

}  // namespace weir::inject
