// Routes whose handlers take references, before these handlers are bound to objects.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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
  GroupMiddleware middleware;
  std::vector<const inject::Type*> values;

  /// Returns true if middleware sets the value for this reference; it is a service otherwise.
  bool sets(const HandlerReference& reference) const {
    return !reference.writable && std::ranges::find(values, reference.type) != values.end();
  }
  /// Returns why a handler with this plain body must not be called here; empty if it may be. A
  /// client could send what middleware should set.
  std::string body_error(const inject::Type* plain_body) const {
    if (plain_body == nullptr || std::ranges::find(values, plain_body) == values.end()) return {};
    const std::string type(plain_body->name);
    return "the handler takes a " + type +
           " by value, which is the body that a client sends (take " +
           "the value of middleware as const " + type + "&, or a body as http::Json<" + type + ">)";
  }
  /// Returns these with `inner` inside of them.
  Surroundings enclosing(const Surroundings& inner) const {
    Surroundings whole = *this;
    whole.middleware.append(inner.middleware);
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
    return UnboundHandler(
        std::make_shared<const F>(std::move(function)), references, S::Arguments::plain_body(),
        [](const Target& target, std::span<void* const> objects) {
          detail::BoundFunction<F> bound{std::static_pointer_cast<const F>(target), {}};
          for (std::size_t i = 0; i < references.size(); ++i) bound.objects[i] = objects[i];
          return Handler::bound<F>(std::move(bound));
        });
  }

  std::span<const HandlerReference> references() const noexcept { return references_; }
  /// See Handler::plain_body().
  const inject::Type* plain_body() const noexcept { return plain_body_; }
  /// Returns a handler that calls the function with these objects, one for each reference. An
  /// object is nullptr if middleware sets the value.
  Handler bind(std::span<void* const> objects) const { return bind_(target_, objects); }
  /// Returns the references to services as a handler writes them: "Store& and const Clock&".
  std::string services_text(const Surroundings& around) const {
    std::string text;
    for (const HandlerReference& each : references_) {
      if (around.sets(each)) continue;
      if (!text.empty()) text += " and ";
      text += each.text();
    }
    return text;
  }

 private:
  using Target = std::shared_ptr<const void>;
  using Bind = Handler (*)(const Target& target, std::span<void* const> objects);
  UnboundHandler(Target target, std::span<const HandlerReference> references,
                 const inject::Type* plain_body, Bind bind) noexcept
      : target_(std::move(target)), references_(references), plain_body_(plain_body), bind_(bind) {}

  Target target_;
  std::span<const HandlerReference> references_;
  const inject::Type* plain_body_;
  Bind bind_;
};

/// The handler of a route, which may wait for its references.
using AnyHandler = std::variant<Handler, UnboundHandler>;

template <class F>
AnyHandler any_handler(F function) {
  if constexpr (Signature<F>::reference_count > 0) {
    return UnboundHandler::of(std::move(function));
  } else {
    return Handler::of(std::move(function));
  }
}

/// Returns why the handler must not be called in these surroundings; empty if it may be.
inline std::string body_error(const AnyHandler& handler, const Surroundings& around) {
  return around.body_error(std::visit([](const auto& each) { return each.plain_body(); }, handler));
}

/// Binds the handler to the values that middleware sets.
/// Returns: false if the handler takes a service and is therefore still unbound.
inline bool bind_values(AnyHandler& handler, const Surroundings& around) {
  const auto* const unbound = std::get_if<UnboundHandler>(&handler);
  if (unbound == nullptr) return true;
  const auto references = unbound->references();
  const auto is_value = [&around](const HandlerReference& each) { return around.sets(each); };
  if (!std::ranges::all_of(references, is_value)) return false;
  handler = unbound->bind(std::vector<void*>(references.size()));
  return true;
}

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
  /// Returns the handler with these services, in the order of its references.
  Handler bind(std::span<void* const> services) const {
    std::vector<void*> objects;
    auto next = services.begin();
    for (const HandlerReference& each : handler.references())
      objects.push_back(around.sets(each) ? nullptr : *next++);
    return handler.bind(objects);
  }
};

}  // namespace weir::http
