#include "tools/simulate/disturbances.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"

namespace weir::simulate {
namespace {

HttpExcuse ended_early_if(bool excused) {
  return excused ? HttpExcuse::ended_early : HttpExcuse::none;
}

HttpExcuses who_is_struck(World& world) {
  return [&faults = world.faults(), connects = std::uint64_t{0}](const WorldHost&,
                                                                 const HttpTalk& talk) mutable {
    if (talk.connected && faults.has_struck(talk.local)) return HttpExcuse::ended_early;
    // Whose connect was struck is not known; how many were, and that they have heard nothing, is.
    return ended_early_if(talk.received.empty() && ++connects <= faults.struck_connects());
  };
}

/// Tells the server, and notes when it was told first.
void tell_to_end(World& world, Instant& told) {
  told = std::min(told, world.now());
  world.host("server").raise(Signal::terminate);
}

bool has_failed_to_allocate(const WorldHost& host) {
  if (host.running() == nullptr) return false;
  return std::ranges::any_of(host.running()->cores, [](const WorldHost::Core& core) {
    return core.fails_to_allocate && !core.loop->blocks().will_fail();
  });
}

HttpExcuses who_is_not_done(std::shared_ptr<Instant> told) {
  return [told = std::move(told)](const WorldHost&, const HttpTalk& talk) {
    return ended_early_if(talk.over >= *told);
  };
}

}  // namespace

HttpExcuses nothing(World&) {
  return [](const WorldHost&, const HttpTalk&) { return HttpExcuse::none; };
}

HttpExcuses faults_now_and_then(World& world) {
  // Some runs are stormy, most have a few faults.
  const double rate = world.draw().happens(0.2) ? 0.05 : 0.005;
  world.faults().rates = {.reset = rate,
                          .half_close = rate,
                          .stall = rate,
                          .full_buffer = rate,
                          .accept_failure = 8 * rate,
                          .stall_max = std::chrono::seconds(10)};
  return who_is_struck(world);
}

Disturbance strike(std::uint64_t number, Fault fault) {
  return [number, fault](World& world) {
    world.faults().strike("server", number, fault);
    return who_is_struck(world);
  };
}

HttpExcuses cut_now_and_then(World& world) {
  WorldHost& server = world.host("server");
  WorldHost& client = world.host("clients 0");
  Duration moment{};
  for (int times = 0; times < 3; ++times) {
    moment += world.draw().between({}, std::chrono::seconds(1));
    world.at(moment, [&world, &server, &client] { world.cut(server, client); });
    const bool long_one = world.draw().happens(0.2);
    moment += world.draw().between({}, std::chrono::seconds(long_one ? 60 : 2));
    world.at(moment, [&world, &server, &client] { world.heal(server, client); });
  }
  return [&client](const WorldHost& clients, const HttpTalk&) {
    return ended_early_if(&clients == &client);
  };
}

HttpExcuses end_early(World& world) {
  const auto told = std::make_shared<Instant>(never);
  const auto tell = [&world, told] { tell_to_end(world, *told); };
  world.at(world.draw().between({}, std::chrono::milliseconds(2500)), tell);
  if (world.draw().happens(0.3)) {
    world.at(world.draw().between({}, std::chrono::milliseconds(4000)), tell);
  }
  return who_is_not_done(told);
}

Disturbance end_at_turn(std::uint64_t number, int signals, std::uint64_t& turns) {
  return [number, signals, &turns](World& world) {
    turns = 0;
    const auto told = std::make_shared<Instant>(never);
    world.always("signals", [number, signals, &turns, &world, told] {
      for (int left = turns++ == number ? signals : 0; left > 0; --left) tell_to_end(world, *told);
      return std::string();
    });
    return who_is_not_done(told);
  };
}

Disturbance fail_allocation(unsigned core, std::size_t number) {
  return [core, number](World& world) {
    world.faults().fail_allocation("server", core, number);
    const auto failed = std::make_shared<Instant>(never);
    world.always("memory", [&world, failed] {
      if (*failed == never && has_failed_to_allocate(world.host("server"))) *failed = world.now();
      return std::string();
    });
    return [&world, failed, suffered = false](const WorldHost&, const HttpTalk& talk) mutable {
      if (talk.over < *failed) return HttpExcuse::none;
      // Where a core could not begin, the server has ended, and told so.
      if (world.host("server").status() == 1) return HttpExcuse::failed_once;
      return std::exchange(suffered, true) ? HttpExcuse::none : HttpExcuse::failed_once;
    };
  };
}

HttpExcuse excuse_by_limits(const http::Limits& limits, const HttpTalk& talk) {
  const std::vector<HttpAnswer> answers = talk.answers();
  if (!answers.empty() && answers.back().whole) {
    const int status = answers.back().status;
    const bool turned_away = status == 503 && answers.size() == 1;
    if (turned_away || status == 408) return HttpExcuse::ended_early;
  }
  // Who sends so much to a server that turns it away meets a reset.
  if (answers.empty() && talk.text.size() > limits.linger_bytes_max) return HttpExcuse::ended_early;
  const Duration silent = std::min(limits.idle_timeout, limits.first_request_timeout);
  return ended_early_if(talk.over - talk.begun >= silent);
}

Disturbance only_limits(const http::Limits& limits) {
  return [limits](World&) {
    return
        [limits](const WorldHost&, const HttpTalk& talk) { return excuse_by_limits(limits, talk); };
  };
}

}  // namespace weir::simulate
