// One machine of a World: the contract of Host, a main function, and what tests do to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/testing/memory_host.hpp"
#include "weir/testing/world_chance.hpp"
#include "weir/testing/world_main.hpp"

namespace weir {

struct WorldHostOptions {
  std::size_t cores = 1;
  std::size_t buffer_bytes = 64 * 1024;  ///< of each direction of a connection, at most
  std::size_t descriptors_max = 1 << 20;
  MemoryFiles files = MemoryFiles::by_backend;
};

/// A connection as the host that has it open knows it.
struct WorldConnection {
  Endpoint peer;
  std::uint64_t received = 0;  ///< bytes that the program has been given
};

/// What a main function is given; it makes a Runtime on it and returns what that returns.
using WorldMainFunction = std::function<int(Host&)>;

/// Made by World::host(). Its main runs programs as they are: a Runtime's loops are turned by the
/// World. A loop that is turned by hand is not supported: whoever waits on it ends the program with
/// a line that says so.
/// Threads: one at a time, as the World sees to. Lifetime: the World's.
class WorldHost final : public MemoryHost {
 public:
  /// Its address, whatever the port, is 10.0.0.<number + 1>.
  WorldHost(WorldState& state, std::string name, unsigned number, const WorldHostOptions& options);
  ~WorldHost() override;

  const std::string& name() const noexcept { return name_; }
  Endpoint address(std::uint16_t port) const noexcept { return address_.with_port(port); }

  /// Calls `main` once the World runs. It is waited for: see World::run_until_done(). Another one
  /// may follow when it has returned, as after a restart.
  void start(WorldMainFunction main) { begin(std::move(main), false); }
  /// The same for what serves others: it gets a SIGTERM when all that are waited for have returned.
  void start_service(WorldMainFunction main) { begin(std::move(main), true); }
  /// Whether its main, if any, has returned.
  bool done() const noexcept { return main_ == nullptr || main_->returned(); }
  /// What the last main has returned; nullopt before, and when it has thrown.
  std::optional<int> status() const noexcept { return status_; }

  /// See WorldFaults::strike().
  std::uint64_t operations() const noexcept { return chance_->operations(); }
  std::uint64_t accepts() const noexcept { return chance_->accepts(); }
  std::uint64_t datagrams() const noexcept { return chance_->datagrams(); }

  /// Those that are open and have received anything, for checks of what a program takes.
  std::vector<WorldConnection> connections();

  Result<> run(std::span<const LoopPlace> places, RunControl* control) override;
  bool pass_time(Instant until) override;
  void log(std::string_view line) noexcept override;

  // For the World.

  struct Core {
    Loop* loop;
    Instant rests_until = Instant::min();  ///< others have its CPU
    bool fails_to_allocate = false;        ///< as the test has asked for
  };
  /// A call of run().
  struct Run {
    std::vector<Core> cores;
    RunControl* control = nullptr;
    Result<> outcome;
  };
  /// While its main waits for its loops.
  Run* running() const noexcept { return run_.get(); }
  bool service() const noexcept { return service_; }
  bool waited_for() const noexcept { return main_ != nullptr && !service_; }
  /// Lets main go on, until it waits or returns.
  void go_on() { main_->go_on(); }
  std::optional<Signal> next_signal() { return take_signal(); }
  /// What the loops of a run that has ended still hold, and what the host does, in words.
  std::vector<std::string> left_on_loops();
  std::vector<std::string> left_on_host() const;
  bool told_to_end = false;

 private:
  WorldHost(WorldState& state, std::string name, unsigned number, const WorldHostOptions& options,
            std::unique_ptr<WorldChance> chance);
  void begin(WorldMainFunction main, bool service);

  WorldState& state_;
  std::string name_;
  Endpoint address_;
  std::unique_ptr<WorldChance> chance_;
  std::unique_ptr<Run> run_;
  std::optional<int> status_;
  std::string thrown_;
  bool service_ = false;
  std::unique_ptr<WorldMain> main_;
};

}  // namespace weir
