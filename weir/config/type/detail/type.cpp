// Fills optionals, lists, maps and sections from raw values.
#include "weir/config/type/detail/type.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "weir/config/source/detail/secret.hpp"
#include "weir/config/source/detail/toml.hpp"

namespace weir::config {

FillContext::KeyScope::KeyScope(FillContext& context, std::string_view name)
    : context_(context), outer_size_(context.key_.size()) {
  if (outer_size_ > 0) context.key_ += '.';
  context.key_ += quote_unless_plain(name);
}

FillContext::KeyScope::KeyScope(FillContext& context, std::size_t index)
    : context_(context), outer_size_(context.key_.size()) {
  context.key_.append("[").append(std::to_string(index)).append("]");
}

std::size_t FillContext::error_count() const noexcept {
  return errors_.all.size() + errors_.omitted;
}

void FillContext::fail(Position position, std::string what) {
  errors_.add({format_location(source_, position), key_, std::move(what)});
}

void FillContext::fail_expected(std::string_view expected, const RawValue& raw) {
  const std::string found = without_secrets(key_, raw.describe());
  fail(raw.position, "expected " + std::string(expected) + ", found " + found);
}

void ValueType::fill(const RawValue& raw, void* value, FillContext& context) const {
  if (!read(raw, value)) context.fail_expected(expected_instead_of(raw), raw);
}

void OptionalType::fill(const RawValue& raw, void* value, FillContext& context) const {
  value_type().fill(raw, get_or_emplace(value), context);
}

void OptionalType::write(std::string& out, const void* value) const {
  const void* const inside = unwrap_optional(value);
  if (inside == nullptr) {
    out += "none";
  } else {
    value_type().write(out, inside);
  }
}

namespace {

/// Returns true for a text such as `[::1]:80,...`. No array of TOML begins with a colon within and
/// another one behind its brackets.
bool begins_with_address(std::string_view text) noexcept {
  const std::size_t end = text.find(']');
  if (end == text.npos || !text.substr(end).starts_with("]:")) return false;
  const std::string_view inside = text.substr(1, end - 1);
  return inside.contains(':') && inside.find_first_of("[{\"', \t") == inside.npos;
}

}  // namespace

std::expected<RawValue, std::string> ListType::split(std::string_view text) {
  if (text.starts_with('[') && !begins_with_address(text)) return parse_toml_value(text);
  RawValue list;
  list.kind = RawValue::Kind::array;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    list.items.push_back(RawValue::untyped(text.substr(0, comma)));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) list.items.push_back(RawValue::untyped(""));
  }
  return list;
}

std::string ListType::placeholder() const {
  // The commas in a table or an inner array would separate elements.
  const bool is_toml =
      element().section() != nullptr || element().map() != nullptr || element().is_list();
  return is_toml ? "[" + element().placeholder() + ", ...]" : element().placeholder() + ",...";
}

void ListType::fill(const RawValue& raw, void* value, FillContext& context) const {
  if (raw.kind == RawValue::Kind::untyped) {
    const auto list = split(raw.text);
    if (!list) return context.fail(raw.position, "expected " + expected() + "; " + list.error());
    return fill(*list, value, context);
  }
  if (raw.kind != RawValue::Kind::array) return context.fail_expected(expected(), raw);
  clear(value);
  for (std::size_t index = 0; index < raw.items.size(); ++index) {
    const FillContext::KeyScope scope(context, index);
    element().fill(raw.items[index], append(value), context);
  }
}

void MapType::fill(const RawValue& raw, void* value, FillContext& context) const {
  if (raw.kind == RawValue::Kind::untyped && raw.text.starts_with('{')) {
    const auto table = parse_toml_value(raw.text);
    if (!table) return context.fail(raw.position, "expected " + expected() + "; " + table.error());
    return fill(*table, value, context);
  }
  if (raw.kind != RawValue::Kind::table) return context.fail_expected(expected(), raw);
  for (const RawValue& item : raw.items) {
    const FillContext::KeyScope scope(context, item.name);
    value_type().fill(item, entry(value, item.name), context);
  }
}

void SectionType::fill(const RawValue& raw, void* value, FillContext& context) const {
  if (raw.kind != RawValue::Kind::table) return context.fail_expected(expected(), raw);
  for (const RawValue& item : raw.items) {
    const FillContext::KeyScope scope(context, item.name);
    const auto all = fields();
    const auto field = std::ranges::find(all, item.name, &Field::name);
    if (field == all.end()) {
      std::vector<std::string_view> names;
      for (const Field& each : all) names.push_back(each.name);
      context.fail(item.name_position, unknown_name_message(item.name, names));
      continue;
    }
    field->type().fill(item, member(value, static_cast<std::size_t>(field - all.begin())), context);
  }
}

void SectionType::write(std::string& out, const void* value) const {
  std::string_view before = "{";
  const auto all = fields();
  for (std::size_t index = 0; index < all.size(); ++index) {
    out.append(std::exchange(before, ", ")).append(all[index].name).append(" = ");
    all[index].type().write(out, member(value, index));
  }
  out += all.empty() ? "{}" : "}";
}

}  // namespace weir::config
