// Starts child processes with fork, reads their two pipes on one thread, and waits with a pidfd.
#include "tests/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "weir/os/detail/io/text_file.hpp"

// The header of glibc 2.36 lacks extern "C".
extern "C" {
#include <sys/pidfd.h>
}

namespace weir::tests {
namespace {

#ifdef WEIR_EXAMPLES_DIR
constexpr std::string_view examples_dir = WEIR_EXAMPLES_DIR;
#else
constexpr std::string_view examples_dir = "examples";
#endif

[[noreturn]] void give_up(const std::string& what) {
  throw std::system_error(errno, std::system_category(), what);
}

/// An Activation is what a service manager passes on: descriptors, and variables that describe
/// them.
class Activation {
 public:
  explicit Activation(const std::vector<int>& given) : given_(given), moved_(given.size()) {
    for (char** each = environ; *each != nullptr; ++each) environment_.push_back(*each);
    count_ = "LISTEN_FDS=" + std::to_string(given.size());
    if (!given.empty()) environment_.insert(environment_.end(), {count_.data(), pid_.data()});
    environment_.push_back(nullptr);
  }

  /// Moves the descriptors to 3, 4, ... in the child. Returns the first number after them.
  unsigned pass_on() {
    // The descriptors are moved away first, because they may have each other's numbers.
    constexpr int beyond = 1000;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      moved_[i] = ::fcntl(given_[i], F_DUPFD, beyond);
    }
    int next = 3;
    for (const int each : moved_) ::dup2(each, next++);
    const auto [end, error] =
        std::to_chars(pid_.data() + pid_name.size(), pid_.data() + pid_.size() - 1, ::getpid());
    *end = '\0';
    return static_cast<unsigned>(next);
  }
  char* const* environment() { return environment_.data(); }

 private:
  static constexpr std::string_view pid_name = "LISTEN_PID=";
  const std::vector<int>& given_;
  std::vector<int> moved_;
  std::string count_;
  std::string pid_ = std::string(pid_name) + std::string(16, '\0');
  std::vector<char*> environment_;
};

/// Runs in the child between fork and exec. It calls only functions that are safe after a fork of
/// a process with threads.
[[noreturn]] void become(const char* path, char* const* arguments, pid_t parent,
                         std::array<int, 3> streams, Activation& activation) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  for (int i = 0; i < 3; ++i) ::dup2(streams[static_cast<std::size_t>(i)], i);
  // The child must not inherit descriptors that this process has inherited.
  ::close_range(activation.pass_on(), ~0u, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execve(path, arguments, activation.environment());
  ::_exit(127);
}

template <class Counts>
std::size_t count_entries(const std::string& folder, Counts counts) {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    if (counts(*each)) ++count;
  }
  return count;
}

std::size_t entries(const std::string& folder) {
  return count_entries(folder, [](const std::filesystem::directory_entry&) { return true; });
}

std::optional<std::uint16_t> find_port(std::string_view text) {
  constexpr std::string_view words = "listening on ";
  const auto start = text.find(words);
  if (start == text.npos) return std::nullopt;
  const auto end = text.find_first_of(" ,;\n", start + words.size());
  if (end == text.npos) return std::nullopt;
  const std::string_view address = text.substr(start + words.size(), end - start - words.size());
  std::uint16_t port = 0;
  const char* digits = address.data() + (address.rfind(':') + 1);
  const auto [rest, error] = std::from_chars(digits, address.data() + address.size(), port);
  if (error != std::errc()) return std::nullopt;
  return port;
}

}  // namespace

/// A Capture collects both streams until they end, on a thread of its own. A child therefore
/// never waits for a reader.
class Process::Capture {
 public:
  Capture(os::Fd output, os::Fd errors)
      : streams_{std::move(output), std::move(errors)},
        stop_(os::open_event().value()),
        reader_([this] { read_all(); }) {}

  ~Capture() {
    os::signal_event(stop_.get());
    reader_.join();
  }

  std::string text(std::size_t stream) const {
    const std::lock_guard lock(mutex_);
    return texts_[stream];
  }

  /// Waits until `holds(output, errors)` is true, the streams end, or the time is up. Returns the
  /// last result of `holds`.
  template <class Holds>
  bool wait(Holds holds, std::chrono::milliseconds timeout) const {
    std::unique_lock lock(mutex_);
    bool found = false;
    changed_.wait_for(lock, timeout, [&] {
      found = holds(texts_[0], texts_[1]);
      return found || ended_;
    });
    return found;
  }

 private:
  void read_all() {
    std::array<pollfd, 3> wanted{
        {{streams_[0].get(), POLLIN, 0}, {streams_[1].get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    while (wanted[0].fd >= 0 || wanted[1].fd >= 0) {
      ::poll(wanted.data(), wanted.size(), -1);
      for (std::size_t i = 0; i < 2; ++i) {
        if (wanted[i].revents != 0 && !read_some(i)) wanted[i].fd = -1;
      }
      if (wanted[2].revents != 0) break;
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  /// Returns false at the end of the stream.
  bool read_some(std::size_t stream) {
    std::array<char, 16384> bytes;
    const auto count = ::read(streams_[stream].get(), bytes.data(), bytes.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    const std::lock_guard lock(mutex_);
    texts_[stream].append(bytes.data(), static_cast<std::size_t>(count));
    changed_.notify_all();
    return count != 0;
  }

  std::array<os::Fd, 2> streams_;
  os::Fd stop_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::array<std::string, 2> texts_;
  bool ended_ = false;
  std::thread reader_;
};

Process::Process(const std::string& path, const std::vector<std::string>& arguments)
    : Process(path, arguments, {}) {}

Process::Process(const std::string& path, const std::vector<std::string>& arguments,
                 const std::vector<int>& given) {
  if (::access(path.c_str(), X_OK) != 0) give_up(path);
  os::Pipe output = os::open_pipe().value();
  os::Pipe errors = os::open_pipe().value();
  // The child writes to blocking pipes, like any program.
  for (const int end : {output.write_end.get(), errors.write_end.get()}) ::fcntl(end, F_SETFL, 0);
  const os::Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  Activation activation(given);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) give_up("fork");
  if (pid_ == 0) {
    become(path.c_str(), pointers.data(), parent,
           {nothing.get(), output.write_end.get(), errors.write_end.get()}, activation);
  }
  pidfd_ = os::Fd(::pidfd_open(pid_, 0));
  if (!pidfd_) give_up("pidfd_open");
  capture_ = std::make_unique<Capture>(std::move(output.read_end), std::move(errors.read_end));
}

Process::Process(Process&&) noexcept = default;

Process::~Process() {
  if (capture_ == nullptr || status_) return;
  signal(SIGKILL);
  wait_for_exit(default_timeout);
}

std::string example_path(std::string_view name) {
  return std::string(examples_dir) + "/example_" + std::string(name);
}

std::string in_path(std::string_view name) {
  const char* const path = std::getenv("PATH");
  // These folders are usual for root and for manual installations.
  std::istringstream folders((path == nullptr ? std::string() : std::string(path) + ":") +
                             "/usr/sbin:/usr/local/go/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/" + std::string(name);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

Process Process::example(std::string_view name, const std::vector<std::string>& arguments) {
  return Process(example_path(name), arguments);
}

std::string Process::output() const {
  return capture_->text(0);
}

std::string Process::errors() const {
  return capture_->text(1);
}

bool Process::wait_for(std::string_view text, std::chrono::milliseconds timeout) const {
  return capture_->wait(
      [&](const std::string& output, const std::string& errors) {
        return output.contains(text) || errors.contains(text);
      },
      timeout);
}

std::optional<std::uint16_t> Process::wait_for_port(std::chrono::milliseconds timeout) const {
  std::optional<std::uint16_t> port;
  capture_->wait(
      [&](const std::string& output, const std::string& errors) {
        port = find_port(output);
        if (!port) port = find_port(errors);
        return port.has_value();
      },
      timeout);
  return port;
}

void Process::signal(int number) const {
  if (!status_) ::pidfd_send_signal(pidfd_.get(), number, nullptr, 0);
}

std::optional<int> Process::wait_for_exit(std::chrono::milliseconds timeout) {
  if (status_) return status_;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0) break;
    if (ready == 0) return std::nullopt;
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // The streams end with the process, unless its own children still hold them.
  const auto never = [](const std::string&, const std::string&) { return false; };
  capture_->wait(never, std::chrono::seconds(1));
  return status_;
}

std::size_t Process::descriptors() const {
  return status_ ? 0 : entries("/proc/" + std::to_string(pid_) + "/fd");
}

std::size_t Process::sockets() const {
  if (status_) return 0;
  const auto is_socket = [](const std::filesystem::directory_entry& entry) {
    std::error_code gone;
    return std::filesystem::read_symlink(entry.path(), gone).native().starts_with("socket:");
  };
  return count_entries("/proc/" + std::to_string(pid_) + "/fd", is_socket);
}

std::size_t Process::threads() const {
  return status_ ? 0 : entries("/proc/" + std::to_string(pid_) + "/task");
}

std::size_t Process::resident_bytes() const {
  if (status_) return 0;
  const auto text = os::read_text_file("/proc/" + std::to_string(pid_) + "/statm").value_or("");
  std::size_t pages = 0;
  const auto resident = text.find(' ') + 1;
  std::from_chars(text.data() + resident, text.data() + text.size(), pages);
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void pause_between_polls() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace weir::tests
