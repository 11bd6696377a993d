#include "weir/config/type/detail/type.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "weir/app/config_toml.hpp"

namespace weir::config {

Filling::Inside::Inside(Filling& filling, std::string_view name)
    : filling_(filling), size_before_(filling.key_.size()) {
  if (size_before_ > 0) filling.key_ += '.';
  filling.key_ += shown_name(name);
}

Filling::Inside::Inside(Filling& filling, std::size_t index)
    : filling_(filling), size_before_(filling.key_.size()) {
  filling.key_.append("[").append(std::to_string(index)).append("]");
}

void Filling::fail(Position position, std::string what) {
  errors_.add({place(source_, position), key_, std::move(what)});
}

void Filling::fail_expected(std::string_view expected, const Given& given) {
  fail(given.position, "expected " + std::string(expected) + ", found " + given.describe());
}

void ValueType::fill(const Given& given, void* value, Filling& filling) const {
  if (!read(given, value)) filling.fail_expected(expected(), given);
}

void OptionalType::fill(const Given& given, void* value, Filling& filling) const {
  inner().fill(given, made(value), filling);
}

void OptionalType::write(std::string& out, const void* value) const {
  const void* const inside = held(value);
  if (inside == nullptr) {
    out += "none";
  } else {
    inner().write(out, inside);
  }
}

std::expected<Given, std::string> ListType::split(std::string_view bare) {
  if (bare.starts_with('[')) return parse_toml_value(bare);
  Given list;
  list.kind = Given::Kind::list;
  while (!bare.empty()) {
    const std::size_t comma = bare.find(',');
    list.items.push_back(Given::bare(bare.substr(0, comma)));
    if (comma == bare.npos) break;
    bare.remove_prefix(comma + 1);
    if (bare.empty()) list.items.push_back(Given::bare(""));
  }
  return list;
}

void ListType::fill(const Given& given, void* value, Filling& filling) const {
  if (given.kind == Given::Kind::bare) {
    const auto list = split(given.text);
    if (!list) return filling.fail(given.position, "expected " + expected() + "; " + list.error());
    return fill(*list, value, filling);
  }
  if (given.kind != Given::Kind::list) return filling.fail_expected(expected(), given);
  clear(value);
  for (std::size_t index = 0; index < given.items.size(); ++index) {
    const Filling::Inside inside(filling, index);
    element().fill(given.items[index], append(value), filling);
  }
}

void MapType::fill(const Given& given, void* value, Filling& filling) const {
  if (given.kind == Given::Kind::bare && given.text.starts_with('{')) {
    const auto table = parse_toml_value(given.text);
    if (!table)
      return filling.fail(given.position, "expected " + expected() + "; " + table.error());
    return fill(*table, value, filling);
  }
  if (given.kind != Given::Kind::table) return filling.fail_expected(expected(), given);
  for (const Given& item : given.items) {
    const Filling::Inside inside(filling, item.name);
    inner().fill(item, entry(value, item.name), filling);
  }
}

void SectionType::fill(const Given& given, void* value, Filling& filling) const {
  if (given.kind != Given::Kind::table) return filling.fail_expected(expected(), given);
  for (const Given& item : given.items) {
    const Filling::Inside inside(filling, item.name);
    const auto all = fields();
    const auto field = std::ranges::find(all, item.name, &Field::name);
    if (field == all.end()) {
      std::vector<std::string_view> names;
      for (const Field& each : all) names.push_back(each.name);
      filling.fail(item.name_position, unknown(item.name, names));
      continue;
    }
    field->type().fill(item, member(value, static_cast<std::size_t>(field - all.begin())), filling);
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
