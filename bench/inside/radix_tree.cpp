// B5: measures the radix tree beside std::map and std::unordered_map, with 1.6 million keys, which
// are decimal strings of 64-bit hashes. Prints one line of JSON per round: nanoseconds per key and
// operation.
//
// Each container runs in a fresh process, so that it does not inherit another container's heap or
// page tables. The bytes per key are the growth of the process divided by the number of keys.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/detail/radix_tree.hpp"

namespace {

using Keys = std::vector<std::string>;

std::uint64_t hash(std::uint64_t value) {  // the finisher of splitmix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

struct Input {
  explicit Input(std::size_t count) {
    std::mt19937_64 random(1);
    for (std::size_t made = 0; made < count; ++made) {
      keys.push_back(std::to_string(hash(random())));
      others.push_back(std::to_string(hash(random())));
    }
    shuffled = keys;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
  }
  Keys keys;
  Keys shuffled;
  Keys others;
};

// ---- The containers -----------------------------------------------------------------------------

class Radix {
 public:
  bool insert(const std::string& key, std::uint64_t value) {
    return tree_.insert(key, value).added;
  }
  bool contains(const std::string& key) const { return tree_.find(key) != nullptr; }
  bool remove(const std::string& key) { return tree_.remove(key); }
  std::uint64_t walk() const {
    std::uint64_t sum = 0;
    tree_.walk([&sum](std::string_view, const std::uint64_t& value) { sum = 3 * sum + value; });
    return sum;
  }

 private:
  weir::RadixTree<std::uint64_t> tree_;
};

template <class Map>
class Standard {
 public:
  bool insert(const std::string& key, std::uint64_t value) {
    return map_.emplace(key, value).second;
  }
  bool contains(const std::string& key) const { return map_.find(key) != map_.end(); }
  bool remove(const std::string& key) { return map_.erase(key) != 0; }

 protected:
  Map map_;
};

class Tree : public Standard<std::map<std::string, std::uint64_t>> {
 public:
  std::uint64_t walk() const {
    std::uint64_t sum = 0;
    for (const auto& [key, value] : map_) sum = 3 * sum + value;
    return sum;
  }
};

/// An unordered table; a walk in order sorts the keys first.
class Table : public Standard<std::unordered_map<std::string, std::uint64_t>> {
 public:
  std::uint64_t walk() const {
    std::vector<const std::pair<const std::string, std::uint64_t>*> sorted;
    sorted.reserve(map_.size());
    for (const auto& each : map_) sorted.push_back(&each);
    std::ranges::sort(sorted, {},
                      [](const auto* each) -> const std::string& { return each->first; });
    std::uint64_t sum = 0;
    for (const auto* each : sorted) sum = 3 * sum + each->second;
    return sum;
  }
};

// ---- Measuring ----------------------------------------------------------------------------------

double nanoseconds_each(std::size_t count, auto&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(count);
}

/// The bytes of private memory of this process.
std::size_t private_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  std::size_t kilobytes = 0;
  while (rollup >> word) {
    if (word == "Private_Dirty:") rollup >> kilobytes;
  }
  return kilobytes * 1024;
}

void expect(bool right) {
  if (right) return;
  std::fputs("radix_tree: a container lost count\n", stderr);
  std::exit(1);
}

template <class Container>
void measure(const char* name, const Input& input) {
  const std::size_t count = input.keys.size();
  Container container;
  const std::size_t before = private_bytes();
  std::size_t done = 0;
  const double insert = nanoseconds_each(count, [&] {
    for (const std::string& key : input.keys) done += container.insert(key, done) ? 1 : 0;
  });
  expect(done == count);
  const double bytes = static_cast<double>(private_bytes() - before) / static_cast<double>(count);
  const double hit = nanoseconds_each(count, [&] {
    for (const std::string& key : input.shuffled) done -= container.contains(key) ? 1 : 0;
  });
  expect(done == 0);
  const double miss = nanoseconds_each(count, [&] {
    for (const std::string& key : input.others) done += container.contains(key) ? 1 : 0;
  });
  expect(done == 0);
  std::uint64_t sum = 0;
  const double walk = nanoseconds_each(count, [&] { sum = container.walk(); });
  const double remove = nanoseconds_each(count, [&] {
    for (const std::string& key : input.shuffled) done += container.remove(key) ? 1 : 0;
  });
  expect(done == count);
  // Equal sums prove that all containers walk in the same order.
  std::printf(
      "\"%s\": {\"insert\": %.2f, \"hit\": %.2f, \"miss\": %.2f, \"walk\": %.2f, "
      "\"remove\": %.2f, \"bytes\": %.1f, \"sum\": %llu}",
      name, insert, hit, miss, walk, remove, bytes, static_cast<unsigned long long>(sum));
}

struct Contender {
  const char* name;
  void (*measure)(const char* name, const Input& input);
};
constexpr Contender contenders[]{
    {"weir::RadixTree", measure<Radix>},
    {"std::map", measure<Tree>},
    {"std::unordered_map", measure<Table>},
};
constexpr std::size_t contender_count = std::size(contenders);

/// Measures in a child process, whose heap ends with it.
void measure_apart(const Contender& contender, const Input& input) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    contender.measure(contender.name, input);
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const Input input(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1'600'000);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < contender_count; ++turn) {
      std::fputs(turn == 0 ? "{" : ", ", stdout);
      measure_apart(contenders[(round + turn) % contender_count], input);
    }
    std::puts("}");
  }
}
