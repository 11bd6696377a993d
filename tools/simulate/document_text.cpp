// Writes random documents in two forms at the same time, and breaks them.
#include "tools/simulate/document_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weir::simulate {
namespace {

constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80 | (code >> shift & 0x3f));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string unit_escape(std::uint32_t unit, sim::Random& random) {
  std::string escape = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    const std::string_view digits = random.bernoulli(0.5) ? "0123456789abcdef" : "0123456789ABCDEF";
    escape += digits[unit >> shift & 15U];
  }
  return escape;
}

std::string any_escape(std::uint32_t code, sim::Random& random) {
  if (code < 0x10000) return unit_escape(code, random);
  const std::uint32_t rest = code - 0x10000;
  return unit_escape(0xd800 + (rest >> 10), random) + unit_escape(0xdc00 + (rest & 0x3ff), random);
}

/// Returns the escape of two characters; empty if there is none.
std::string short_escape(std::uint32_t code) {
  constexpr std::string_view codes = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  const std::size_t at = code < 0x80 ? codes.find(static_cast<char>(code)) : std::string_view::npos;
  if (at == std::string_view::npos) return {};
  return {'\\', letters[at]};
}

/// Returns the characters of `text`, which is UTF-8.
std::vector<std::uint32_t> codes_of(const std::string& text) {
  std::vector<std::uint32_t> codes;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if ((byte & 0xc0) == 0x80) {
      codes.back() = codes.back() << 6 | (byte & 0x3f);
    } else {
      codes.push_back(byte < 0x80   ? byte
                      : byte < 0xe0 ? byte & 0x1f
                      : byte < 0xf0 ? byte & 0xf
                                    : byte & 7);
    }
  }
  return codes;
}

/// Returns the string as the server writes it.
std::string usual_string(const std::string& text) {
  std::string usual = "\"";
  for (const std::uint32_t code : codes_of(text)) {
    const std::string escape = short_escape(code);
    if (!escape.empty()) {
      usual += escape;
    } else if (code < 0x20) {
      usual += "\\u00";
      usual += "01"[code >> 4];
      usual += "0123456789abcdef"[code & 15U];
    } else {
      append_utf8(usual, code);
    }
  }
  return usual + "\"";
}

std::string joined(char open, const std::vector<std::string>& members, char close) {
  std::string text(1, open);
  for (const std::string& each : members) {
    if (text.size() > 1) text += ',';
    text += each;
  }
  return text + close;
}

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

double draw_real(sim::Random& random) {
  constexpr std::array edges{0.0, -0.0, 5e-324, 1.7976931348623157e308,
                             0.1, 1e21, 1e-7,   123456789.0};
  switch (random.below(4)) {
    case 0:
      return random.one_of(edges);
    case 1:
      return static_cast<double>(random.below(1000)) / 8;
    case 2:
      return -static_cast<double>(random.below(1'000'000));
    default: {
      const auto value = std::bit_cast<double>(random.next());
      return std::isfinite(value) ? value : 2.5;
    }
  }
}

template <class... Format>
std::string number_text(double value, Format... format) {
  std::array<char, 512> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format...).ptr;
  return {text.data(), end};
}

}  // namespace

DocumentText::DocumentText(sim::Random& random) : random_(random) {
  blanks();
  usual_ = document();
  blanks();
}

void DocumentText::blanks() {
  if (random_.bernoulli(0.7)) return;
  for (std::size_t left = random_.below(4); left > 0; --left)
    text_ += random_.one_of(std::array{' ', '\n', '\r', '\t'});
}

/// Writes a string with some characters escaped that need no escape.
void DocumentText::quoted(const std::string& characters) {
  const double rate = random_.bernoulli(0.5) ? 0 : 0.3;
  text_ += '"';
  for (const std::uint32_t code : codes_of(characters)) {
    const std::string escape = code == '/' ? "\\/" : short_escape(code);
    if (!escape.empty() && (code != '/' || random_.bernoulli(0.3)) && random_.bernoulli(0.7)) {
      text_ += escape;
    } else if (code < 0x20 || code == '"' || code == '\\' || random_.bernoulli(rate)) {
      text_ += any_escape(code, random_);
    } else {
      append_utf8(text_, code);
    }
  }
  text_ += '"';
}

std::string DocumentText::draw_text() {
  constexpr std::array<std::uint32_t, 20> edges{
      1,    8,    9,     10,    12,     13,     0x1f,   '"',     '\\',     '/',
      0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff, 0xfffd};
  std::string text;
  const double rate = random_.bernoulli(0.5) ? 0 : 0.2;
  const std::size_t size = random_.bernoulli(0.1) ? random_.below(1500) : random_.below(40);
  for (std::size_t left = size; left > 0; --left) {
    const bool edge = random_.bernoulli(rate);
    append_utf8(text,
                edge ? random_.one_of(edges) : ' ' + static_cast<std::uint32_t>(random_.below(95)));
  }
  return text;
}

void DocumentText::place(Kind kind, const std::string& path, std::size_t begin) {
  places_.push_back({.kind = kind, .path = path, .begin = begin, .end = text_.size()});
}

std::string DocumentText::integer(const std::string& path, std::int64_t least, std::int64_t most) {
  const std::size_t begin = text_.size();
  const auto range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  const std::array<std::int64_t, 4> edges{least, most, 0, least / 2};
  std::int64_t value = random_.one_of(edges);
  if (random_.bernoulli(0.5)) {
    const std::uint64_t offset =
        range == ~std::uint64_t{0} ? random_.next() : random_.next() % (range + 1);
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + offset);
  }
  text_ += value == 0 && random_.bernoulli(0.2) ? "-0" : std::to_string(value);
  place(Kind::integer, path, begin);
  return std::to_string(value);
}

std::string DocumentText::natural(const std::string& path) {
  const std::size_t begin = text_.size();
  const std::uint64_t value =
      random_.bernoulli(0.3) ? ~std::uint64_t{0} : random_.next() >> random_.below(64);
  text_ += std::to_string(value);
  place(Kind::integer, path, begin);
  return std::to_string(value);
}

std::string DocumentText::real(const std::string& path) {
  const std::size_t begin = text_.size();
  const double value = draw_real(random_);
  std::string usual = number_text(value);
  if (usual.find_first_of(".e") == std::string::npos) usual += ".0";
  std::string form = number_text(value);
  if (random_.bernoulli(0.3)) form = number_text(value, std::chars_format::scientific);
  if (random_.bernoulli(0.2)) form = number_text(value, std::chars_format::fixed);
  if (random_.bernoulli(0.3)) std::ranges::replace(form, 'e', 'E');
  text_ += form;
  place(Kind::real, path, begin);
  return usual;
}

std::string DocumentText::string(const std::string& path) {
  const std::size_t begin = text_.size();
  const std::string text = draw_text();
  quoted(text);
  place(Kind::text, path, begin);
  return usual_string(text);
}

std::string DocumentText::boolean(const std::string& path) {
  const std::size_t begin = text_.size();
  const std::string value = random_.bernoulli(0.5) ? "true" : "false";
  text_ += value;
  place(Kind::boolean, path, begin);
  return value;
}

std::string DocumentText::color(const std::string& path) {
  constexpr std::array<std::string_view, 3> colors{"red", "green", "blue"};
  const std::size_t begin = text_.size();
  const std::string name(random_.one_of(colors));
  quoted(name);
  place(Kind::text, path, begin);
  return "\"" + name + "\"";
}

std::string DocumentText::array(
    Kind kind, const std::string& path, std::size_t size,
    const std::function<std::string(const std::string& path)>& element) {
  const std::size_t begin = text_.size();
  std::vector<std::string> elements;
  text_ += '[';
  for (std::size_t index = 0; index < size; ++index) {
    if (index > 0) text_ += ',';
    blanks();
    elements.push_back(element(path + "[" + std::to_string(index) + "]"));
    blanks();
  }
  if (size == 0) blanks();
  text_ += ']';
  place(kind, path, begin);
  places_.back().empty = size == 0;
  return joined('[', elements, ']');
}

/// Writes the members in any order; absent ones are null or not written.
std::string DocumentText::object(const std::string& path, std::vector<Field> fields) {
  const std::size_t begin = text_.size();
  std::map<std::string, std::string> written;  // usual forms by name
  std::vector<std::size_t> order(fields.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  if (random_.bernoulli(0.5)) {
    for (std::size_t at = order.size() - 1; at > 0; --at) {
      std::swap(order[at], order[random_.below(at + 1)]);
    }
  }
  text_ += '{';
  Place last{};
  for (const std::size_t index : order) {
    const Field& field = fields[index];
    const bool absent = !field.required && random_.bernoulli(0.4);
    if (absent && random_.bernoulli(0.5)) continue;
    const std::size_t comma = text_.size();
    const bool first = text_[comma - 1] == '{' && comma == begin + 1;
    if (!first) text_ += ',';
    last.last_name = field.name;
    last.last_begin = first ? 0 : comma;
    last.last_is_required = field.required;
    blanks();
    quoted(field.name);
    blanks();
    text_ += ':';
    blanks();
    if (absent) {
      text_ += "null";
    } else {
      written[field.name] = field.write(below(path, field.name));
    }
    blanks();
  }
  text_ += '}';
  place(Kind::object, path, begin);
  places_.back().last_name = last.last_name;
  places_.back().last_begin = last.last_begin;
  places_.back().last_is_required = last.last_is_required;
  std::vector<std::string> members;
  for (const Field& field : fields) {
    const auto found = written.find(field.name);
    if (found != written.end()) members.push_back("\"" + field.name + "\":" + found->second);
  }
  return joined('{', members, '}');
}

std::string DocumentText::table(const std::string& path) {
  const std::size_t begin = text_.size();
  std::map<std::string, std::string> entries;
  std::string last;
  text_ += '{';
  for (std::size_t left = random_.below(4); left > 0; --left) {
    // The paths below an unusual key are not predicted; nothing is broken there.
    const bool usual = random_.bernoulli(0.8);
    const std::string key = usual ? "k" + std::to_string(random_.below(1000)) : draw_text();
    if (entries.contains(key)) continue;
    if (!entries.empty()) text_ += ',';
    blanks();
    quoted(key);
    blanks();
    text_ += ':';
    blanks();
    const std::size_t known = places_.size();
    entries[key] =
        array(Kind::array, below(path, key), random_.below(4), [this](const std::string& of) {
          return integer(of, std::numeric_limits<std::int32_t>::min(),
                         std::numeric_limits<std::int32_t>::max());
        });
    if (!usual) places_.resize(known);
    last = usual ? key : "";
    blanks();
  }
  text_ += '}';
  place(Kind::map, path, begin);
  places_.back().empty = entries.empty();
  places_.back().last_name = last;
  std::vector<std::string> members;
  for (const auto& [key, value] : entries) members.push_back(usual_string(key) + ":" + value);
  return joined('{', members, '}');
}

std::string DocumentText::part(const std::string& path) {
  return object(
      path,
      {{"count", true, [this](const std::string& of) { return integer(of, int64_min, int64_max); }},
       {"ratio", true, [this](const std::string& of) { return real(of); }},
       {"label", true, [this](const std::string& of) { return string(of); }},
       {"mark", false, [this](const std::string& of) { return boolean(of); }}});
}

std::string DocumentText::any(const std::string& path) {
  const std::size_t begin = text_.size();
  const std::size_t known = places_.size();
  std::string usual;
  switch (random_.below(4)) {
    case 0:
      usual = integer(path, int64_min, int64_max);
      break;
    case 1:
      usual = string(path);
      break;
    case 2:
      usual = array(Kind::array, path, random_.below(4),
                    [this](const std::string& of) { return real(of); });
      break;
    default:
      usual = part(path);
      break;
  }
  places_.resize(known);
  place(Kind::any, path, begin);
  return usual;
}

std::string DocumentText::document() {
  std::vector<Field> fields{
      {"tiny", true, [this](const std::string& of) { return integer(of, -128, 127); }},
      {"large", true, [this](const std::string& of) { return natural(of); }},
      {"text", true, [this](const std::string& of) { return string(of); }},
      {"note", false, [this](const std::string& of) { return string(of); }},
      {"parts", true,
       [this](const std::string& of) {
         return array(Kind::array, of, random_.below(5),
                      [this](const std::string& each) { return part(each); });
       }},
      {"table", true, [this](const std::string& of) { return table(of); }},
      {"flags", true,
       [this](const std::string& of) {
         return array(Kind::three, of, 3,
                      [this](const std::string& each) { return boolean(each); });
       }},
      {"color", true, [this](const std::string& of) { return color(of); }},
      {"any", true, [this](const std::string& of) { return any(of); }}};
  return object("", std::move(fields));
}

DocumentText::Fault DocumentText::replace(const Place& place, std::string_view by,
                                          std::size_t offset) {
  text_.replace(place.begin, place.end - place.begin, by);
  return {place.path, place.begin + offset};
}

DocumentText::Fault DocumentText::insert(const std::string& path, std::size_t at,
                                         std::string_view more, std::size_t offset) {
  text_.insert(at, more);
  return {path, at + offset};
}

/// Replaces a value by one of another kind, or by a number that does not fit.
DocumentText::Fault DocumentText::break_value(const Place& place) {
  if (place.kind == Kind::integer && random_.bernoulli(0.7)) {
    switch (random_.below(4)) {
      case 0:
        return replace(place, "18446744073709551616", 0);
      case 1:
        return replace(place, "12.5", 2);
      case 2:
        return replace(place, "1e2", 1);
      default:
        return replace(place, "012", 0);
    }
  }
  if (place.kind == Kind::real && random_.bernoulli(0.7)) {
    switch (random_.below(4)) {
      case 0:
        return replace(place, "1e999", 0);
      case 1:
        return replace(place, "1.", 2);
      case 2:
        return replace(place, "-", 1);
      default:
        return replace(place, "1e+", 3);
    }
  }
  const std::string_view other = place.kind == Kind::boolean ? "\"x\"" : "true";
  return replace(place, random_.bernoulli(0.3) ? "@" : other, 0);
}

DocumentText::Fault DocumentText::break_string(const Place& place) {
  constexpr std::array<std::string_view, 12> wrong{
      "\x01", "\n",      "\x1f",     "\xff",    "\xc0\x80",         "\xed\xa0\x80",
      "\\x",  "\\u12G4", "\\ud800x", "\\udc00", "\xf4\x90\x80\x80", "\\ud800\\u0041"};
  return insert(place.path, place.begin + 1, random_.one_of(wrong), 0);
}

/// Breaks an array, an object or a map: its commas, its names, or its size.
DocumentText::Fault DocumentText::break_members(const Place& place) {
  const std::size_t close = place.end - 1;
  const bool is_map = place.kind == Kind::map;
  if (place.kind == Kind::three && random_.bernoulli(0.5)) {
    return insert(place.path, close, ",true", 1);
  }
  if (is_map && !place.last_name.empty() && random_.bernoulli(0.5)) {
    return insert(below(place.path, place.last_name), close, ",\"" + place.last_name + "\":[]", 1);
  }
  if (place.kind == Kind::object) {
    switch (random_.below(4)) {
      case 0:
        return insert(below(place.path, "zz"), place.begin + 1, "\"zz\":1,", 0);
      case 1:
        return insert(below(place.path, place.last_name), close, ",\"" + place.last_name + "\":0",
                      1);
      case 2:
        if (!place.last_is_required || place.last_begin == 0) break;
        text_.erase(place.last_begin, close - place.last_begin);
        return {below(place.path, place.last_name), place.last_begin};
      default:
        break;
    }
  }
  if (place.empty) return insert(place.path + (is_map ? "" : "[0]"), close, ",", 0);
  return insert(place.path, close, ",", 1);
}

DocumentText::Fault DocumentText::break_text() {
  if (random_.bernoulli(0.05)) return insert("", 0, "\xEF\xBB\xBF", 0);
  if (random_.bernoulli(0.1)) return insert("", text_.size(), "{}", 0);
  const Place place = places_[random_.below(places_.size())];
  const bool is_array = place.kind == Kind::array || place.kind == Kind::three;
  const bool has_members = is_array || place.kind == Kind::object || place.kind == Kind::map;
  if (has_members && random_.bernoulli(0.8)) return break_members(place);
  if (place.kind == Kind::text && random_.bernoulli(0.7)) return break_string(place);
  return break_value(place);
}

}  // namespace weir::simulate
