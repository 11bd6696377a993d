// Measures a JSON round trip (B10) beside nlohmann-json: writes {"id":20,"val":"five hundred"},
// reads it again and compares the values. Prints one line of JSON per round.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "weir/json.hpp"

namespace {

constexpr int round_trips = 5'000'000;

struct Small {
  int id;
  std::string val;
  bool operator==(const Small&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Small, id, val)

struct Weir {
  Small there_and_back(const Small& sent) const {
    auto back = weir::json::read<Small>(weir::json::write(sent));
    return back ? std::move(*back) : Small{};
  }
};

/// Reuses the memory of the text and of the value.
struct InPlace {
  const Small& there_and_back(const Small& sent) {
    text.clear();
    weir::json::write_to(text, sent);
    if (!weir::json::read_into(back, text)) back = {};
    return back;
  }
  std::string text;
  Small back;
};

struct Nlohmann {
  Small there_and_back(const Small& sent) const {
    return nlohmann::json::parse(nlohmann::json(sent).dump()).get<Small>();
  }
};

/// Millions of round trips per second. Ends the program if a value changes.
template <class Library>
double measure(int times) {
  const Small sent{20, "five hundred"};
  Library library;
  const auto begin = std::chrono::steady_clock::now();
  for (int time = 0; time < times; ++time) {
    if (library.there_and_back(sent) != sent) {
      std::fputs("another value came back\n", stderr);
      std::exit(1);
    }
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return times / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    const double weir = measure<Weir>(round_trips);
    const double in_place = measure<InPlace>(round_trips);
    const double nlohmann = measure<Nlohmann>(round_trips / 10);
    std::printf(
        "{\"weir::json\": {\"millions\": %.3f}, \"weir::json, memory used again\": "
        "{\"millions\": %.3f}, \"nlohmann-json\": {\"millions\": %.3f}}\n",
        weir, in_place, nlohmann);
  }
}
