// Runs a fuzz target without libFuzzer. Each argument is an input file or a folder of them, the
// seed corpus. The option --seconds then runs random mutations of these inputs for that time. An
// empty corpus is an error, so that the test cannot pass without any input.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Defined by the sanitizers; null without them.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<std::uint8_t>;

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return {bytes.begin(), bytes.end()};
}

std::vector<Input> read_all(const std::vector<std::filesystem::path>& paths) {
  std::vector<Input> inputs;
  for (const auto& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      inputs.push_back(read(path));
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(),
              files.end());  // a seed then means the same on every machine
    for (const auto& file : files) inputs.push_back(read(file));
  }
  return inputs;
}

/// A Chance makes inputs from others by random mutations, as libFuzzer does, but without
/// coverage.
class Chance {
 public:
  Chance(const std::vector<Input>& inputs, std::uint64_t seed) : inputs_(inputs), draw_(seed) {}

  Input next() {
    Input input = any();
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    constexpr std::size_t size_max = 4096;
    if (input.size() > size_max) input.resize(size_max);
    return input;
  }

 private:
  static std::ptrdiff_t signed_of(std::size_t number) {
    return static_cast<std::ptrdiff_t>(number);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(draw_() % count); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(draw_()); }
  const Input& any() { return inputs_[below(inputs_.size())]; }

  /// Returns a part of `input`, which is mostly short.
  Input piece(const Input& input) {
    if (input.empty()) return {byte()};
    const std::size_t start = below(input.size());
    const std::size_t left = input.size() - start;
    const std::size_t size = 1 + below(below(4) == 0 ? left : std::min<std::size_t>(left, 16));
    const auto begin = input.begin() + signed_of(start);
    return {begin, begin + signed_of(size)};
  }

  void change(Input& input) {
    const std::size_t at = below(input.size() + 1);
    const auto place = input.begin() + signed_of(at);
    const std::size_t left = input.size() - at;
    switch (below(6)) {
      case 0:
        if (left > 0) *place = byte();
        return;
      case 1:
        if (left > 0) *place = static_cast<std::uint8_t>(*place ^ (1U << below(8)));
        return;
      case 2:
        input.insert(place, byte());
        return;
      case 3:
        input.erase(place,
                    place + signed_of(left == 0 ? 0 : below(std::min<std::size_t>(left, 32))));
        return;
      case 4: {
        const Input more = piece(input);
        input.insert(input.begin() + signed_of(at), more.begin(), more.end());
        return;
      }
      default: {
        const Input more = piece(any());
        input.insert(place, more.begin(), more.end());
        return;
      }
    }
  }

  const std::vector<Input>& inputs_;
  std::mt19937_64 draw_;
};

// The running input, for the handlers that run when the program aborts.
const Input* running = nullptr;
std::string found_path;

void keep_running() {
  if (running == nullptr) return;
  const int file = ::open(found_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  static_cast<void>(!::write(file, running->data(), running->size()));
  ::close(file);
  std::fprintf(stderr, "the input is kept as %s\n", found_path.c_str());
  running = nullptr;
}

void run(const Input& input) {
  running = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  running = nullptr;
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 10);
}
std::chrono::duration<double> decimal_seconds(const char* text) {
  return std::chrono::duration<double>(std::strtod(text, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  std::chrono::duration<double> seconds{0};
  std::random_device device;
  std::uint64_t seed = (std::uint64_t{device()} << 32) | device();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = decimal_seconds(argv[++i]);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = number(argv[++i]);
    } else {
      paths.emplace_back(argument);
    }
  }
  found_path = std::string(argv[0]) + ".found";
  std::signal(SIGABRT, [](int) { keep_running(); });
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&keep_running);

  const std::vector<Input> inputs = read_all(paths);
  for (const Input& input : inputs) run(input);
  std::printf("replayed %zu inputs\n", inputs.size());
  if (inputs.empty()) return 1;
  if (seconds.count() == 0) return 0;
  // The time that ./dev test has for a sweep holds here too.
  if (const char* const budget = std::getenv("WEIR_SWEEP_SECONDS"); budget != nullptr) {
    seconds = std::min(seconds, decimal_seconds(budget));
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Chance chance(inputs, seed);
  std::size_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + seconds;
  for (; std::chrono::steady_clock::now() < end; ++runs) run(chance.next());
  std::printf("ran %zu inputs made of them\n", runs);
  return runs == 0 ? 1 : 0;  // the time was too short for one
}
