// References to the fields of a struct, for aggregates in C++ without reflection.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace weir::json::detail {

/// An AnyField takes the position of any field while the fields are counted. It is never made.
struct AnyField {
  template <class T>
  constexpr operator T() const noexcept {
    std::unreachable();
  }
};
/// An AnyBase takes the position of a base class of T only. It is never made.
template <class T>
struct AnyBase {
  template <class B>
    requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>)
  constexpr operator B() const noexcept {
    std::unreachable();
  }
};

inline constexpr std::size_t fields_max = 32;

template <class T, std::size_t>
using AnyFieldFor = AnyField;

template <class T, std::size_t... Before>
constexpr bool can_initialise_with(std::index_sequence<Before...>) {
  return requires { T{AnyFieldFor<T, Before>()...}; };
}

/// Returns the number of initialisers that T takes; fields_max + 1 if it takes more than
/// fields_max.
template <class T, std::size_t Most = fields_max + 1>
constexpr std::size_t count_fields() {
  if constexpr (Most == 0 || can_initialise_with<T>(std::make_index_sequence<Most>())) {
    return Most;
  } else {
    return count_fields<T, Most - 1>();
  }
}

template <class T>
inline constexpr std::size_t field_count = count_fields<T>();

template <class T, std::size_t... Before, std::size_t... After>
constexpr bool can_initialise_with_empty(std::index_sequence<Before...>,
                                         std::index_sequence<After...>) {
  return requires { T{AnyFieldFor<T, Before>()..., {}, AnyFieldFor<T, After>()...}; };
}

/// Returns false if an initialiser of T is only a part of a field, such as an element of a C
/// array. An empty pair of braces initialises the whole field, so the other initialisers are then
/// too many.
template <class T>
constexpr bool initialisers_are_fields() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (true && ... &&
            can_initialise_with_empty<T>(std::make_index_sequence<I>(),
                                         std::make_index_sequence<sizeof...(I) - I - 1>()));
  }(std::make_index_sequence<field_count<T>>());
}

template <class T>
inline constexpr bool has_base = requires { T{AnyBase<T>()}; };

/// Checks that T is a struct that can be read and written; the static_asserts say why it is not.
template <class T>
consteval bool check_struct() {
  static_assert(field_count<T> <= fields_max,
                "weir::json: a struct has at most 32 fields; put some into a struct of their own");
  if constexpr (field_count<T> <= fields_max) {
    static_assert(!has_base<T>, "weir::json: a struct with a base class is not supported");
    static_assert(
        initialisers_are_fields<T>(),
        "weir::json: a field cannot be a C array (use std::array) and must have a default "
        "value");
  }
  return field_count<T> <= fields_max && !has_base<T> && initialisers_are_fields<T>();
}

// Structured bindings have a fixed number of names, so each number of fields has its branch.
template <class T, class Visitor>
constexpr decltype(auto) with_up_to_16_fields(T& object, Visitor&& use) {
  constexpr std::size_t count = field_count<std::remove_const_t<T>>;
  if constexpr (count == 0) {
    return use();
  } else if constexpr (count == 1) {
    auto& [a] = object;
    return use(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = object;
    return use(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = object;
    return use(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = object;
    return use(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = object;
    return use(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = object;
    return use(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return use(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return use(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return use(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return use(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

template <class T, class Visitor>
constexpr decltype(auto) with_up_to_24_fields(T& object, Visitor&& use) {
  constexpr std::size_t count = field_count<std::remove_const_t<T>>;
  if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (count == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (count == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (count == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (count == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (count == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  }
}

template <class T, class Visitor>
constexpr decltype(auto) with_up_to_32_fields(T& object, Visitor&& use) {
  constexpr std::size_t count = field_count<std::remove_const_t<T>>;
  if constexpr (count == 25) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y);
  } else if constexpr (count == 26) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z);
  } else if constexpr (count == 27) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A] =
        object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A);
  } else if constexpr (count == 28) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B] =
        object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B);
  } else if constexpr (count == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C] =
        object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B,
               C);
  } else if constexpr (count == 30) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C,
           D] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B,
               C, D);
  } else if constexpr (count == 31) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D,
           E] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B,
               C, D, E);
  } else if constexpr (count == 32) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D,
           E, F] = object;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B,
               C, D, E, F);
  }
}

/// Calls `use` with a reference to each field of `object`, in the order of declaration.
template <class T, class Visitor>
constexpr decltype(auto) with_fields(T& object, Visitor&& use) {
  constexpr std::size_t count = field_count<std::remove_const_t<T>>;
  if constexpr (count <= 16) {
    return with_up_to_16_fields(object, std::forward<Visitor>(use));
  } else if constexpr (count <= 24) {
    return with_up_to_24_fields(object, std::forward<Visitor>(use));
  } else {
    return with_up_to_32_fields(object, std::forward<Visitor>(use));
  }
}

}  // namespace weir::json::detail
