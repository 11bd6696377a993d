// Routes whose handlers take references, before these handlers are bound to objects.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/service_refs.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"

namespace weir::http {

/// The middleware of the groups of a route, outermost first, and the types of the values that
/// middleware sets.
struct Surroundings {
  std::vector<std::shared_ptr<const Middleware>> middleware;
  std::vector<const inject::Type*> values;

  /// Returns these with `inner` inside of them.
  Surroundings around(const Surroundings& inner) const {
    Surroundings whole = *this;
    whole.middleware.insert(whole.middleware.end(), inner.middleware.begin(),
                            inner.middleware.end());
    whole.values.insert(whole.values.end(), inner.values.begin(), inner.values.end());
    return whole;
  }
};

/// A handler that takes references, before it is bound to objects. Copies share the function.
/// Threads: const members on any thread.
class UnboundHandler {
 public:
  template <class F>
  static UnboundHandler of(F function) {
    using S = Signature<F>;
    S::check();
    static constexpr auto references = detail::describe_references(typename S::References());
    return UnboundHandler(std::make_shared<const F>(std::move(function)), references,
                          [](const Target& target, std::span<void* const> objects) {
                            detail::BoundFunction<F> bound{
                                std::static_pointer_cast<const F>(target), {}};
                            for (std::size_t i = 0; i < references.size(); ++i)
                              bound.objects[i] = objects[i];
                            return Handler::bound<F>(std::move(bound));
                          });
  }

  std::span<const HandlerReference> references() const noexcept { return references_; }
  /// Returns a handler that calls the function with these objects, one for each reference. An
  /// object is nullptr if middleware sets the value.
  Handler bind(std::span<void* const> objects) const { return bind_(target_, objects); }

 private:
  using Target = std::shared_ptr<const void>;
  using Bind = Handler (*)(const Target& target, std::span<void* const> objects);
  UnboundHandler(Target target, std::span<const HandlerReference> references, Bind bind) noexcept
      : target_(std::move(target)), references_(references), bind_(bind) {}

  Target target_;
  std::span<const HandlerReference> references_;
  Bind bind_;
};

/// A route whose handler takes references. The App that serves the router makes one Route for
/// each core, with the services of that core; Router::bind() makes one Route.
/// Threads: const members on any thread.
struct UnboundRoute {
  std::string method;
  Pattern pattern;
  UnboundHandler handler;
  RouteOptions options;
  Surroundings around;

  /// Returns the route as "POST /users/{user}", for messages.
  std::string name() const { return method + " " + pattern.text(); }
  /// Returns true if the reference is a service, and false if middleware sets the value.
  bool is_service(const HandlerReference& reference) const {
    return reference.writable ||
           std::ranges::find(around.values, reference.type) == around.values.end();
  }
  /// Returns true if the handler takes a service.
  bool takes_services() const {
    return std::ranges::any_of(handler.references(),
                               [this](const auto& each) { return is_service(each); });
  }
  /// Returns the handler with these services, in the order of its references.
  Handler bind(std::span<void* const> services) const {
    std::vector<void*> objects;
    auto next = services.begin();
    for (const HandlerReference& each : handler.references())
      objects.push_back(is_service(each) ? *next++ : nullptr);
    return handler.bind(objects);
  }
};

}  // namespace weir::http
