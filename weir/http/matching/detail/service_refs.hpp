// References that handlers take: services, and values that middleware has set.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/detail/function_type.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/http/message/request.hpp"

namespace weir::http {

/// The services that a program gives to the handlers of a router; see Router::bind().
/// Threads: any; a const object is not changed.
/// Lifetime: the services outlive the router.
class ServiceRefs {
 public:
  /// Throws a pointer to the object, so that a `catch` finds its bases.
  using Raise = void (*)(void* object);
  struct Service {
    void* object;
    Raise raise;
  };

  template <class... S>
  explicit ServiceRefs(S&... services)
      : services_{Service{const_cast<void*>(static_cast<const void*>(std::addressof(services))),
                          &raise<S>}...} {}

  const std::vector<Service>& services() const noexcept { return services_; }

 private:
  template <class S>
  [[noreturn]] static void raise(void* object) {
    throw static_cast<S*>(object);
  }

  std::vector<Service> services_;
};

/// One reference that a handler takes, without its C++ type.
struct HandlerReference {
  const inject::Type* type;
  bool writable;  ///< true for a T&, which is always a service
  /// Returns the reference as a handler writes it.
  std::string text() const {
    return (writable ? std::string() : std::string("const ")) + std::string(type->name) + "&";
  }
  /// Returns the service as this type, or nullptr if its class does not derive from this type.
  void* (*find)(const ServiceRefs::Service& service);

  /// Returns the first service of this type, or nullptr.
  void* find_in(const ServiceRefs& services) const {
    for (const ServiceRefs::Service& each : services.services()) {
      if (void* const found = find(each)) return found;
    }
    return nullptr;
  }
};

namespace detail {

template <class T>
void* find_service(const ServiceRefs::Service& service) {
  try {
    service.raise(service.object);
  } catch (T* found) {
    return const_cast<std::remove_const_t<T>*>(found);
  } catch (...) {
    return nullptr;  // a service of another class
  }
  return nullptr;
}

template <class P>
constexpr HandlerReference describe_reference() {
  using T = std::remove_reference_t<P>;
  return {&inject::type<std::remove_const_t<T>>, !std::is_const_v<T>, &find_service<T>};
}

template <class... P>
constexpr std::array<HandlerReference, sizeof...(P)> describe_references(Parameters<P...>) {
  return {describe_reference<P>()...};
}

/// Throws the error that middleware has not set a value of this type.
[[noreturn]] void throw_missing_value(std::string_view type);

/// Returns the reference that a handler takes. `object` is a service, or nullptr if middleware sets
/// the value.
/// Errors: throws if middleware has set no value.
template <class P>
P reference_to(void* object, const Request& request) {
  using T = std::remove_reference_t<P>;
  if constexpr (std::is_const_v<T>) {
    if (object == nullptr) {
      const T* const value = request.get<std::remove_const_t<T>>();
      if (value == nullptr) [[unlikely]]
        throw_missing_value(inject::type_name<std::remove_const_t<T>>());
      return *value;
    }
  }
  return *static_cast<T*>(object);
}

}  // namespace detail
}  // namespace weir::http
