// Runs the whole server in a World, with one client of HTTP/2. The input decides which bytes the
// client sends, when, and how it leaves. The frames of the server must be valid, and nothing may be
// left when the client has gone.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "fuzz/server_service.hpp"
#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/world.hpp"

namespace {

using namespace weir;
using weir::fuzz::require;

// A piece of the script is its length and its bytes. This length is a command instead, whose number
// follows.
constexpr std::uint8_t command_mark = 255;

enum class Command : std::uint8_t { pass, pass_long, finish, reset, stop_reading, read, terminate };
constexpr std::size_t command_count = 7;

/// The options that the first bytes of an input choose.
struct Choices {
  std::uint8_t seed = 0;
  std::uint8_t options = 0;     // bits, as the functions below read them
  std::uint8_t allocation = 0;  // the index of the allocation that fails, with the option
  static constexpr std::size_t size = 3;

  bool has_greeting() const { return (options & 1) == 0; }
  bool has_jitter() const { return (options & 2) != 0; }
  bool has_tight_limits() const { return (options & 4) != 0; }
  bool allocation_fails() const { return (options & 24) == 24; }
};

/// Returns limits that few frames and little time reach.
http::Limits tight_limits() {
  http::Limits limits = fuzz::tight_limits();
  limits.h2.streams_max = 3;
  limits.h2.stream_window = 100;
  limits.h2.connection_window = 65'535;
  limits.h2.bodies_max = 150;
  limits.h2.block_bytes_max = 300;
  limits.h2.block_frames_max = 3;
  limits.h2.field_list_max = 500;
  limits.h2.control_bytes_max = 500;
  limits.h2.output_max = 300;
  limits.h2.work.burst = 100;
  limits.h2.work.delays_max = 3;
  return limits;
}

/// Checks the frames that a server has sent.
class FrameChecker {
 public:
  void check(std::string_view received) {
    Bytes rest = to_bytes(received);
    for (;;) {
      const http::FrameEvent event = reader_.next(rest);
      rest = rest.subspan(event.consumed);
      if (event.kind == http::FrameEvent::Kind::need_more) return;
      require(event.kind != http::FrameEvent::Kind::connection_error);
      require(event.kind != http::FrameEvent::Kind::stream_error);
      require(event.kind != http::FrameEvent::Kind::ignored);
      if (event.kind == http::FrameEvent::Kind::block) read_block(event);
    }
  }

 private:
  void read_block(const http::FrameEvent& event) {
    block_ += to_text(event.bytes);
    if (!event.last || (event.flags & http::FrameFlag::end_headers) == 0) return;
    constexpr std::size_t most = 64 * 1024;
    std::string scratch(http::HpackDecoder::scratch_size(most), '\0');
    http::HpackDecoder decoder(table_, to_bytes(block_), most, scratch);
    require(decoder.next() == http::HpackDecoder::Step::field);
    require(decoder.field().name == ":status");
    http::HpackDecoder::Step step;
    while ((step = decoder.next()) == http::HpackDecoder::Step::field) {
    }
    require(step == http::HpackDecoder::Step::end && !decoder.exceeded());
    block_.clear();
  }

  http::FrameReader reader_;
  http::HpackTable table_;
  std::string block_;
};

/// A Run is one server, its client and the script that it follows.
class Run {
 public:
  Run(const Choices& choices, std::string_view script)
      : choices_(choices),
        script_(script),
        world_({.seed = choices.seed,
                .jitter = choices.has_jitter() ? sim::JitterOptions() : sim::no_jitter}),
        server_(world_.host("server", {.cores = 1, .buffer_bytes = 8192})),
        network_(world_.host("clients", {.buffer_bytes = 8192})) {
    if (choices.has_tight_limits()) limits_ = tight_limits();
    if (choices.allocation_fails()) {
      // The first four allocations start the core, which cannot run without them.
      world_.faults().fail_allocation("server", 0, std::size_t{4} + choices.allocation);
    }
  }

  void run() {
    server_.start([this](loop::Platform& platform) { return serve(platform); });
    // A core creates its listener in its first turns.
    world_.schedule(std::chrono::milliseconds(200), [this] {
      client_.emplace(network_, server_.address(80));
      if (choices_.has_greeting()) {
        constexpr std::string_view frames("\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 18);
        client_->send(std::string(http::H2Session::client_preface).append(frames));
      }
      follow();
    });
    const sim::WorldReport report = world_.run_until_done(std::chrono::hours(24));
    for (const std::string& failure : report.failures) check_failure(failure);
    if (!client_) return;  // the server could not begin
    const std::string& received = client_->received();
    if (received.starts_with("HTTP/1.1 ")) return;  // to a client without the preface
    FrameChecker().check(received);
  }

 private:
  int serve(loop::Platform& platform) {
    http::Router routes;
    fuzz::add_routes(routes);
    return Runtime(platform, {.cores = 1, .announce = false})
        .run_on_each_core(fuzz::serve_registered, std::cref(routes), Endpoint::any(80), limits_,
                          std::ref(servers_), http::PlainHttp2::prior_knowledge);
  }

  /// Continues with the script until time has to pass.
  void follow() {
    while (at_ + 1 < script_.size()) {
      const auto length = static_cast<std::uint8_t>(script_[at_++]);
      if (length != command_mark) {
        client_->send(script_.substr(at_, length));
        at_ += length;
        continue;
      }
      const auto command =
          static_cast<Command>(static_cast<std::uint8_t>(script_[at_++]) % command_count);
      if (command == Command::pass || command == Command::pass_long) {
        const Duration time = command == Command::pass ? Duration(std::chrono::milliseconds(20))
                                                       : Duration(std::chrono::seconds(2));
        world_.schedule(time, [this] { follow(); });
        return;
      }
      execute(command);
    }
    finish();
  }

  void execute(Command command) {
    switch (command) {
      case Command::finish:
        return client_->finish();
      case Command::reset:
        return client_->reset();
      case Command::stop_reading:
        return client_->set_reading(false);
      case Command::read:
        return client_->set_reading(true);
      case Command::terminate:
        terminated_ = true;
        return server_.raise(loop::Signal::terminate);
      case Command::pass:
      case Command::pass_long:
        return;
    }
  }

  /// Ends all faults and lets the client read. The connection then ends on its own.
  void finish() {
    world_.faults().stop();
    client_->set_reading(true);
    constexpr Duration drain_time = std::chrono::seconds(300);
    world_.schedule(drain_time, [this] { probe(); });
  }

  bool must_serve() const { return !terminated_ && !choices_.allocation_fails(); }

  /// Checks that the server has released everything and still serves.
  void probe() {
    if (must_serve()) {
      for (http::ServerState* const each : servers_) {
        require(each->counters().connections_open.value() == 0);
      }
      require(server_.open_descriptors() == 1);
      prober_.emplace(network_, server_.address(80));
      prober_->send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    world_.schedule(std::chrono::seconds(40), [this] {
      require(!must_serve() || prober_->received().starts_with("HTTP/1.1 200 "));
      server_.raise(loop::Signal::terminate);
    });
  }

  void check_failure(const std::string& failure) const {
    // The failing allocation may hit the service itself.
    if (choices_.allocation_fails() && failure == "server: main returned 1") return;
    std::fprintf(stderr, "h2_server_fuzz: %s\n", failure.c_str());
    require(false);
  }

  Choices choices_;
  std::string_view script_;
  http::Limits limits_;
  sim::World world_;
  sim::Host& server_;
  sim::Host& network_;  // the host of the client
  fuzz::ActiveServers servers_;
  std::optional<sim::Peer> client_;
  std::optional<sim::Peer> prober_;
  std::size_t at_ = 0;  // position in the script
  bool terminated_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run_script<Choices, Run>(data, size);
}
