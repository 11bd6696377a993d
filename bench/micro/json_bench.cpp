// Measures JSON round trips (B10) beside nlohmann-json and simdjson, each used as its documentation
// advises. Checks after each round trip that the values are equal.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json.hpp"

namespace {

/// B10: {"id":20,"val":"five hundred"}
struct Small {
  int id;
  std::string val;
  bool operator==(const Small&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Small, id, val)

struct Item {
  std::int64_t number;
  std::string name;
  double price;
  std::vector<std::string> tags;
  bool stocked;
  bool operator==(const Item&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Item, number, name, price, tags, stocked)

constexpr std::int64_t round_trips = 5'000'000;

Small small() {
  return {20, "five hundred"};
}

std::vector<Item> items(std::int64_t count) {
  std::vector<Item> all;
  for (std::int64_t number = 0; number < count; ++number) {
    all.push_back({number * 1'000'003,
                   "the item with the number " + std::to_string(number),
                   static_cast<double>(number) * 0.37,
                   {"red", "green", "light blue"},
                   number % 3 == 0});
  }
  return all;
}

/// simdjson needs padding after a text, and code for each field.
void read_with(simdjson::ondemand::parser& parser, simdjson::padded_string_view text,
               Small& value) {
  auto document = parser.iterate(text);
  value.id = static_cast<int>(std::int64_t{document["id"]});
  value.val = std::string_view(document["val"]);
}

void read_with(simdjson::ondemand::parser& parser, simdjson::padded_string_view text,
               std::vector<Item>& value) {
  auto document = parser.iterate(text);
  value.clear();
  for (auto each : document.get_array()) {
    Item& item = value.emplace_back();
    item.number = std::int64_t{each["number"]};
    item.name = std::string_view(each["name"]);
    item.price = double{each["price"]};
    for (auto tag : each["tags"]) item.tags.emplace_back(std::string_view(tag));
    item.stocked = bool{each["stocked"]};
  }
}

void count_bytes(benchmark::State& state, std::size_t size) {
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

// ---- Round trips --------------------------------------------------------------------------------

void b10_weir(benchmark::State& state) {
  const Small sent = small();
  std::size_t size = 0;
  for (auto _ : state) {
    const std::string text = weir::json::write(sent);
    const auto back = weir::json::read<Small>(text);
    if (!back || *back != sent) return state.SkipWithError("another value");
    size = text.size();
  }
  count_bytes(state, size);
}
BENCHMARK(b10_weir)->Iterations(round_trips);

/// Reuses the memory of the text and the value.
void b10_weir_in_place(benchmark::State& state) {
  const Small sent = small();
  std::string text;
  Small back;
  for (auto _ : state) {
    text.clear();
    weir::json::write_to(text, sent);
    if (!weir::json::read_into(back, text) || back != sent) {
      return state.SkipWithError("another value");
    }
  }
  count_bytes(state, text.size());
}
BENCHMARK(b10_weir_in_place)->Iterations(round_trips);

void b10_nlohmann(benchmark::State& state) {
  const Small sent = small();
  std::size_t size = 0;
  for (auto _ : state) {
    const std::string text = nlohmann::json(sent).dump();
    if (nlohmann::json::parse(text).get<Small>() != sent) {
      return state.SkipWithError("another value");
    }
    size = text.size();
  }
  count_bytes(state, size);
}
BENCHMARK(b10_nlohmann)->Iterations(round_trips / 10);

// ---- Reading only -------------------------------------------------------------------------------

template <class T>
void read_weir(benchmark::State& state, T (*make)(std::int64_t)) {
  const T expected = make(state.range(0));
  const std::string text = weir::json::write(expected);
  T value{};
  for (auto _ : state) {
    if (!weir::json::read_into(value, text)) return state.SkipWithError("not read");
    benchmark::DoNotOptimize(&value);
  }
  if (value != expected) state.SkipWithError("another value");
  count_bytes(state, text.size());
}

/// Reads a text that has padding.
template <class T>
void read_simdjson(benchmark::State& state, T (*make)(std::int64_t)) {
  const T expected = make(state.range(0));
  std::string text = weir::json::write(expected);
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::parser parser;
  T value{};
  for (auto _ : state) {
    read_with(parser, simdjson::padded_string_view(text.data(), text.size(), text.capacity()),
              value);
    benchmark::DoNotOptimize(&value);
  }
  if (value != expected) state.SkipWithError("another value");
  count_bytes(state, text.size());
}

/// Reads a text without padding, as in a receive buffer: simdjson needs a copy.
template <class T>
void read_simdjson_copy(benchmark::State& state, T (*make)(std::int64_t)) {
  const T expected = make(state.range(0));
  const std::string text = weir::json::write(expected);
  simdjson::ondemand::parser parser;
  T value{};
  for (auto _ : state) {
    const simdjson::padded_string padded(text);
    read_with(parser, padded, value);
    benchmark::DoNotOptimize(&value);
  }
  if (value != expected) state.SkipWithError("another value");
  count_bytes(state, text.size());
}

template <class T>
void read_nlohmann(benchmark::State& state, T (*make)(std::int64_t)) {
  const T expected = make(state.range(0));
  const std::string text = weir::json::write(expected);
  T value{};
  for (auto _ : state) {
    nlohmann::json::parse(text).get_to(value);
    benchmark::DoNotOptimize(&value);
  }
  if (value != expected) state.SkipWithError("another value");
  count_bytes(state, text.size());
}

Small make_small(std::int64_t) {
  return small();
}
/// One long string, plain except for an escape at its end.
Small make_long(std::int64_t size) {
  return {20, std::string(static_cast<std::size_t>(size), 'x') + "\n"};
}

BENCHMARK_CAPTURE(read_weir, small, make_small)->Arg(1);
BENCHMARK_CAPTURE(read_simdjson, small, make_small)->Arg(1);
BENCHMARK_CAPTURE(read_simdjson_copy, small, make_small)->Arg(1);
BENCHMARK_CAPTURE(read_nlohmann, small, make_small)->Arg(1);
BENCHMARK_CAPTURE(read_weir, items, items)->Arg(1)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(read_simdjson, items, items)->Arg(1)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(read_simdjson_copy, items, items)->Arg(1)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(read_nlohmann, items, items)->Arg(1)->Arg(10)->Arg(1000);
BENCHMARK_CAPTURE(read_weir, text, make_long)->Arg(1 << 10)->Arg(1 << 20);
BENCHMARK_CAPTURE(read_simdjson, text, make_long)->Arg(1 << 10)->Arg(1 << 20);
BENCHMARK_CAPTURE(read_simdjson_copy, text, make_long)->Arg(1 << 10)->Arg(1 << 20);
BENCHMARK_CAPTURE(read_nlohmann, text, make_long)->Arg(1 << 10)->Arg(1 << 20);

void write_weir(benchmark::State& state) {
  const auto value = items(state.range(0));
  std::string text;
  for (auto _ : state) {
    text.clear();
    weir::json::write_to(text, value);
    benchmark::DoNotOptimize(text.data());
  }
  count_bytes(state, text.size());
}
BENCHMARK(write_weir)->Arg(1)->Arg(1000);

void write_nlohmann(benchmark::State& state) {
  const auto value = items(state.range(0));
  std::size_t size = 0;
  for (auto _ : state) {
    const std::string text = nlohmann::json(value).dump();
    size = text.size();
  }
  count_bytes(state, size);
}
BENCHMARK(write_nlohmann)->Arg(1)->Arg(1000);

}  // namespace
