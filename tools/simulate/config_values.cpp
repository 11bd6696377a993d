// The values of each kind, correct and wrong ones.
#include "tools/simulate/config_values.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace weir::simulate {
std::string toml_string(std::string_view text) {
  std::string toml = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') toml += '\\';
    if (each == '\n') {
      toml += "\\n";
    } else if (each == '\t') {
      toml += "\\u0009";
    } else {
      toml += each;
    }
  }
  return toml + "\"";
}

std::string ConfigValues::draw_word() {
  constexpr std::array<std::string_view, 7> words{"a",     "b c",    "x=y",      "\"q\" \\",
                                                  "tab\t", "line\n", "\xc3\xa4#"};
  return std::string(random_.one_of(words));
}

ConfigValue ConfigValues::name() {
  if (toml_ && wrong()) return wrong_one("a string", {}, {"5", "true", "[]", "{}"});
  const std::string word = draw_word();
  return {as_text(word), [word](ServiceConfig& config) { config.name = word; }};
}

ConfigValue ConfigValues::verbose() {
  if (wrong()) return wrong_one("true or false", {"yes", "1", "TRUE", ""}, {"1", "\"true\"", "[]"});
  const bool on = random_.bernoulli(0.5);
  return {on ? "true" : "false", [on](ServiceConfig& config) { config.verbose = on; }};
}

template <class T>
ConfigValue ConfigValues::integer(const std::function<void(ServiceConfig&, T)>& set) {
  using Limits = std::numeric_limits<T>;
  const std::string least = std::to_string(Limits::min());
  const std::string most = std::to_string(Limits::max());
  if (wrong()) {
    std::vector<std::string> texts{"+1", "1.0", "", "0x1", "1e3", " 1", "1_0", "--1", "x"};
    std::vector<std::string> literals{"1.0", "\"1\"", "true", "[1]", "1979-05-27"};
    if constexpr (sizeof(T) < sizeof(std::int64_t)) {
      const std::string above = std::to_string(std::int64_t{Limits::max()} + 1);
      const std::string below = std::to_string(std::int64_t{Limits::min()} - 1);
      texts.insert(texts.end(), {above, below, above, below});
      literals.insert(literals.end(), {above, below, above, below});
    } else {
      texts.insert(texts.end(), {"18446744073709551616", "-1"});
      literals.emplace_back("-1");
    }
    return wrong_one("an integer from " + least + " to " + most, texts, literals);
  }
  constexpr std::array<T, 4> edges{Limits::min(), Limits::max(), T{0}, T{100}};
  T value = random_.bernoulli(0.5) ? random_.one_of(edges) : static_cast<T>(random_.next());
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (toml_) value &= ~std::uint64_t{0} >> 1;  // an integer of TOML has 64 bits with its sign
  }
  std::string text = std::to_string(value);
  if (toml_ && value == T{100} && random_.bernoulli(0.7)) {
    constexpr std::array<std::string_view, 5> forms{"+100", "1_00", "0x64", "0o144", "0b1100100"};
    text = random_.one_of(forms);
  }
  return {text, [set, value](ServiceConfig& config) { set(config, value); }};
}

ConfigValue ConfigValues::ratio() {
  if (wrong()) {
    if (random_.bernoulli(0.2)) {
      return wrong_one("a number with a decimal point, or an integer that 53 bits hold exactly",
                       {"9007199254740993"}, {"9007199254740993"});
    }
    return wrong_one("a number", {"nan", "inf", "1e999", "1,5", "", "0x1"},
                     {"nan", "inf", "\"1\"", "true"});
  }
  constexpr std::array<std::pair<std::string_view, double>, 5> known{
      {{"0.25", 0.25},
       {"1e3", 1000},
       {"-2.5e-1", -0.25},
       {"3", 3},
       {"9007199254740992", 9007199254740992.0}}};
  const auto& [text, value] = known[random_.below(known.size())];
  return {std::string(text), [number = value](ServiceConfig& config) { config.ratio = number; }};
}

ConfigValue ConfigValues::mode() {
  if (wrong()) {
    return wrong_one("\"fast\" or \"safe\"", {"FAST", "fas", "", "0"}, {"\"FAST\"", "0", "\"\""});
  }
  const bool safe = random_.bernoulli(0.5);
  return {as_text(safe ? "safe" : "fast"), [safe](ServiceConfig& config) {
            config.mode = safe ? ServiceMode::safe : ServiceMode::fast;
          }};
}

ConfigValue ConfigValues::duration(bool milliseconds,
                                   const std::function<void(ServiceConfig&, Duration)>& set) {
  struct Unit {
    std::string_view name;
    std::int64_t nanoseconds;
  };
  constexpr std::array<Unit, 7> units{{{"d", 86'400'000'000'000},
                                       {"h", 3'600'000'000'000},
                                       {"min", 60'000'000'000},
                                       {"s", 1'000'000'000},
                                       {"ms", 1'000'000},
                                       {"us", 1'000},
                                       {"ns", 1}}};
  std::string expected = "a duration such as 250ms, 5s or 1h30min";
  if (milliseconds) expected += ", a multiple of 1ms";
  if (wrong()) {
    std::vector<std::string> texts{"5",   "",   "1min1h", "1s1s", "1.5ns", "-1s",
                                   "1 s", "1S", ".5s",    "1.s",  "1.2.3s"};
    // The last text of each kind is longer than 63 bits of ticks.
    if (milliseconds) {
      texts.insert(texts.end(), {"1500us", "1ns", "0.5ms", "1.0001ms", "106751991168d"});
    } else {
      texts.emplace_back("106752d");
    }
    std::vector<std::string> literals{"5", "1.5", "true"};
    for (const std::string& each : texts) literals.push_back(toml_string(each));
    return wrong_one(expected, texts, literals);
  }
  if (random_.bernoulli(0.1)) {
    return {as_text("106751d"),
            [set](ServiceConfig& config) { set(config, std::chrono::days(106'751)); }};
  }
  const std::size_t end = milliseconds ? 5 : units.size();
  std::string text;
  Duration value{};
  for (std::size_t at = random_.below(end); at < end; at += 1 + random_.below(3)) {
    const Unit& unit = units[at];
    const std::size_t count = random_.below(1000);
    text += std::to_string(count);
    value += Duration(static_cast<std::int64_t>(count) * unit.nanoseconds);
    if (at + 1 < end && random_.bernoulli(0.3)) {
      text += ".5";
      value += Duration(unit.nanoseconds / 2);
    }
    text += unit.name;
  }
  return {as_text(text), [set, value](ServiceConfig& config) { set(config, value); }};
}

ConfigValue ConfigValues::size() {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Unit, 9> units{{{"TiB", std::uint64_t{1} << 40},
                                       {"TB", 1'000'000'000'000},
                                       {"GiB", std::uint64_t{1} << 30},
                                       {"GB", 1'000'000'000},
                                       {"MiB", std::uint64_t{1} << 20},
                                       {"MB", 1'000'000},
                                       {"KiB", std::uint64_t{1} << 10},
                                       {"kB", 1'000},
                                       {"B", 1}}};
  if (wrong()) {
    std::vector<std::string> texts{"1.5B",           "1KB", "-1",       "1kB1MB",
                                   "1B1B",           "1b",  "0.0001kB", "18446744073709551616",
                                   "17179869184GiB", "1 B"};
    std::vector<std::string> literals{"-1", "1.5", "true"};
    for (const std::string& each : texts) literals.push_back(toml_string(each));
    return wrong_one("a size such as 64KiB, 1.5MiB or 1000", texts, literals);
  }
  const auto result = [](std::string text, std::uint64_t bytes) {
    return ConfigValue{std::move(text), [bytes](ServiceConfig& config) {
                         config.limits.body_max = ByteSize(bytes);
                       }};
  };
  if (random_.bernoulli(0.1)) return result(as_text("17179869183GiB"), 17'179'869'183U << 30);
  if (random_.bernoulli(0.3)) {
    const std::uint64_t bytes = random_.next() >> (1 + random_.below(63));
    const std::string digits = std::to_string(bytes);
    return result(random_.bernoulli(0.5) ? digits : as_text(digits), bytes);
  }
  std::string text;
  std::uint64_t bytes = 0;
  for (std::size_t at = random_.below(units.size()); at < units.size();
       at += 1 + random_.below(4)) {
    const Unit& unit = units[at];
    const std::size_t count = random_.below(1000);
    text += std::to_string(count);
    bytes += count * unit.bytes;
    if (unit.bytes > 1 && random_.bernoulli(0.3)) {
      text += ".5";
      bytes += unit.bytes / 2;
    }
    text += unit.name;
  }
  return result(as_text(text), bytes);
}

ConfigValue ConfigValues::tags() {
  std::vector<std::string> words;
  for (std::size_t left = random_.below(4); left > 0; --left) words.push_back(draw_word());
  const auto change = [words](ServiceConfig& config) { config.tags = words; };
  std::string text;
  const bool brackets = toml_ || random_.bernoulli(0.5);
  for (const std::string& word : words) {
    if (!text.empty()) text += ",";
    text += brackets ? toml_string(word) : word;
  }
  if (!brackets) return {text, change};
  return {"[" + text + "]", change};
}

ConfigValue ConfigValues::draw(std::string_view key) {
  if (key == "name") return name();
  if (key == "verbose") return verbose();
  if (key == "offset") {
    return integer<std::int8_t>([](ServiceConfig& config, std::int8_t to) { config.offset = to; });
  }
  if (key == "seed") {
    return integer<std::uint64_t>(
        [](ServiceConfig& config, std::uint64_t to) { config.seed = to; });
  }
  if (key == "ratio") return ratio();
  if (key == "mode") return mode();
  if (key == "level") {
    return integer<std::int32_t>([](ServiceConfig& config, std::int32_t to) { config.level = to; });
  }
  if (key == "idle_timeout") {
    return duration(false, [](ServiceConfig& config, Duration to) { config.idle_timeout = to; });
  }
  if (key == "tags") return tags();
  if (key == "limits.body_max") return size();
  if (key == "limits.connections_max") {
    return integer<std::uint16_t>(
        [](ServiceConfig& config, std::uint16_t to) { config.limits.connections_max = to; });
  }
  if (key == "limits.patience") {
    return duration(true, [](ServiceConfig& config, Duration to) {
      config.limits.patience = std::chrono::duration_cast<std::chrono::milliseconds>(to);
    });
  }
  const std::string name(key.substr(key.find('.') + 1));  // a key of the map
  return integer<std::int32_t>(
      [name](ServiceConfig& config, std::int32_t to) { config.weights[name] = to; });
}

}  // namespace weir::simulate
