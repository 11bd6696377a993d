// The Types of optionals, vectors, maps and checked values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/config/type/detail/scalar.hpp"
#include "weir/config/type/detail/type.hpp"
#include "weir/json/checked.hpp"

namespace weir::config::detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
class OptionalOf final : public OptionalType {
  static_assert(!is_optional<T>, "weir::config: an optional of an optional has no notation");

 public:
  const void* unwrap_optional(const void* value) const noexcept override {
    const auto& optional = *static_cast<const std::optional<T>*>(value);
    return optional ? std::addressof(*optional) : nullptr;
  }

 private:
  const Type& value_type() const noexcept override { return type_of<T>(); }
  void* get_or_emplace(void* value) const override {
    auto& optional = *static_cast<std::optional<T>*>(value);
    return optional ? std::addressof(*optional) : std::addressof(optional.emplace());
  }
};

/// A Checked is filled as its T, if the value satisfies the rules.
template <class T, class... Rules>
class CheckedOf final : public Type {
  using Value = Checked<T, Rules...>;

 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const override {
    const std::size_t errors = context.error_count();
    T inside = **static_cast<const Value*>(value);
    type_of<T>().fill(raw, std::addressof(inside), context);
    if (context.error_count() != errors) return;
    const Value checked(std::move(inside));
    if (!checked.holds()) return context.fail_expected(expected(), raw);
    *static_cast<Value*>(value) = checked;
  }
  void write(std::string& out, const void* value) const override {
    type_of<T>().write(out, std::addressof(**static_cast<const Value*>(value)));
  }
  std::string placeholder() const override { return type_of<T>().placeholder(); }
  std::string expected() const override { return Value::expected(); }
  bool is_flag() const noexcept override { return type_of<T>().is_flag(); }
  bool is_list() const noexcept override { return type_of<T>().is_list(); }
};

template <class T>
class VectorOf final : public ListType {
  static_assert(!std::is_same_v<T, bool>, "weir::config: use std::vector<char> or an enum");

 public:
  void write(std::string& out, const void* value) const override {
    const char* before = "[";
    for (const T& each : *static_cast<const std::vector<T>*>(value)) {
      out += std::exchange(before, ", ");
      type_of<T>().write(out, std::addressof(each));
    }
    out += before[0] == '[' ? "[]" : "]";
  }

 private:
  const Type& element() const noexcept override { return type_of<T>(); }
  void clear(void* list) const override { static_cast<std::vector<T>*>(list)->clear(); }
  void* append(void* list) const override {
    return std::addressof(static_cast<std::vector<T>*>(list)->emplace_back());
  }
};

template <class T>
class MapOf final : public MapType {
  using Map = std::map<std::string, T>;

 public:
  void write(std::string& out, const void* value) const override {
    const char* before = "{";
    for (const auto& [name, each] : *static_cast<const Map*>(value)) {
      out += std::exchange(before, ", ");
      write_text(out, name);
      out += " = ";
      type_of<T>().write(out, std::addressof(each));
    }
    out += before[0] == '{' ? "{}" : "}";
  }
  const Type& value_type() const noexcept override { return type_of<T>(); }

 private:
  void* entry(void* map, const std::string& name) const override {
    return std::addressof(static_cast<Map*>(map)->try_emplace(name).first->second);
  }
};

}  // namespace weir::config::detail
