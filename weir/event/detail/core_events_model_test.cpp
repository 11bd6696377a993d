// Events of one core against a model that does the same by the simplest means: handlers and
// interceptors that publish, register, end each other and throw, in random order.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir {
namespace {

constexpr std::size_t queued_max = 40;
constexpr unsigned types = 3;
constexpr unsigned any_type = types;
constexpr unsigned sources = 3;  // 0 is nobody in particular

enum class Kind : std::uint8_t { handler, before, after };

/// Something registered.
struct Member {
  Kind kind;
  unsigned type;    // or any_type, unless it is a handler
  unsigned source;  // of a handler: 0 is all
};

struct Event {
  std::uint64_t number;
  unsigned type;
  unsigned source;
  std::size_t priority;
};

/// What happened: member `who` was told of event `number`, or (who = nobody) it was refused.
struct Noted {
  static constexpr std::size_t nobody = ~std::size_t{0};
  std::size_t who;
  std::uint64_t number;
  bool operator==(const Noted&) const = default;
  friend void PrintTo(const Noted& noted, std::ostream* out) {
    *out << noted.who << "<-" << noted.number;
  }
};

/// What members do, and what is done from outside: the same for both worlds.
class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed) {}
  virtual ~World() = default;

  void publish_some(std::uint64_t random) {
    const Event event{numbers_++, static_cast<unsigned>(random % types),
                      static_cast<unsigned>(random / 8 % sources), random / 64 % event_priorities};
    if (!publish(event)) noted_.push_back({Noted::nobody, event.number});
  }
  void add_some(std::uint64_t random) {
    Member member{static_cast<Kind>(random % 3), static_cast<unsigned>(random / 8 % types),
                  static_cast<unsigned>(random / 64 % sources)};
    if (member.kind != Kind::handler && random / 512 % 2 == 0) member.type = any_type;
    members_.push_back(member);
    join(members_.size() - 1);
  }
  void end_some(std::uint64_t random) {
    if (!members_.empty()) end(random % members_.size());
  }

  /// What member `who` does with an event; the answer counts for Kind::before.
  EventVerdict told(std::size_t who, std::uint64_t number) {
    noted_.push_back({who, number});
    const std::uint64_t random = mixed(who, number);
    // From this many events on it comes to an end.
    if (random % 7 == 0 && numbers_ < numbers_max_) publish_some(random / 16);
    if (random % 11 == 0 && members_.size() < 200) add_some(random / 16);
    if (random % 13 == 0) end_some(random / 16);
    if (random % 17 == 0) end(who);
    if (random % 19 == 0) throw std::runtime_error("it may");
    return random % 5 == 0 ? EventVerdict::veto : EventVerdict::pass;
  }

  void let_publish(std::uint64_t more) { numbers_max_ = numbers_ + more; }
  std::vector<Noted> take_notes() { return std::exchange(noted_, {}); }
  std::size_t members() const { return members_.size(); }

 protected:
  /// False: refused.
  virtual bool publish(const Event& event) = 0;
  /// The one that was added last.
  virtual void join(std::size_t who) = 0;
  virtual void end(std::size_t who) = 0;

  std::vector<Member> members_;

 private:
  std::uint64_t mixed(std::uint64_t who, std::uint64_t number) const {
    std::uint64_t bits = seed_ + who * 0x9E37'79B9'7F4A'7C15 + number * 0xBF58'476D'1CE4'E5B9;
    bits = (bits ^ bits >> 30) * 0xBF58'476D'1CE4'E5B9;
    bits = (bits ^ bits >> 27) * 0x94D0'49BB'1331'11EB;
    return bits ^ bits >> 31;
  }

  std::uint64_t seed_;
  std::uint64_t numbers_ = 0;
  std::uint64_t numbers_max_ = 0;
  std::vector<Noted> noted_;
};

// ---- The model ----------------------------------------------------------------------------------

class Model : public World {
 public:
  using World::World;

  void drain() {
    for (;;) {
      std::size_t priority = 0;
      while (priority < event_priorities && waiting_[priority].empty()) ++priority;
      if (priority == event_priorities) return;
      const Event event = waiting_[priority].front();
      waiting_[priority].pop_front();
      handle(event);
    }
  }

 private:
  bool publish(const Event& event) override {
    std::size_t waiting = 0;
    for (const auto& of_class : waiting_) waiting += of_class.size();
    if (waiting == queued_max) return false;
    waiting_[event.priority].push_back(event);
    return true;
  }
  void join(std::size_t) override { alive_.push_back(true); }
  void end(std::size_t who) override { alive_[who] = false; }

  void handle(const Event& event) {
    const std::size_t members = alive_.size();  // who comes now is told of the next
    bool vetoed = false;
    for (const unsigned type : {any_type, event.type}) {
      for (std::size_t who = 0; who < members && !vetoed; ++who) {
        if (wants(who, Kind::before, type)) vetoed = tell(who, event) == EventVerdict::veto;
      }
    }
    for (std::size_t who = 0; who < members && !vetoed; ++who) {
      const unsigned source = members_[who].source;
      if (wants(who, Kind::handler, event.type) && (source == 0 || source == event.source)) {
        tell(who, event);
      }
    }
    for (const unsigned type : {event.type, any_type}) {
      for (std::size_t who = 0; who < members; ++who) {
        if (wants(who, Kind::after, type)) tell(who, event);
      }
    }
  }
  bool wants(std::size_t who, Kind kind, unsigned type) const {
    return alive_[who] && members_[who].kind == kind && members_[who].type == type;
  }
  EventVerdict tell(std::size_t who, const Event& event) {
    try {
      return told(who, event.number);
    } catch (const std::runtime_error&) {
      return EventVerdict::pass;
    }
  }

  std::array<std::deque<Event>, event_priorities> waiting_;
  std::vector<bool> alive_;
};

// ---- The real one -------------------------------------------------------------------------------

/// Types of different sizes: in the queue, and outside.
template <unsigned Type>
struct Numbered {
  std::uint64_t number = 0;
  std::array<char, 100 * Type> padding{};
};
template <>
struct Numbered<0> {
  std::uint64_t number = 0;
};

class Real : public World {
 public:
  Real(std::uint64_t seed, EventBus& bus, Loop& loop) : World(seed), events_(bus.local(loop)) {
    for (unsigned source = 1; source < sources; ++source) sources_[source] = bus.make_source();
  }

 private:
  bool publish(const Event& event) override {
    const EventOptions options{static_cast<EventPriority>(event.priority), sources_[event.source]};
    switch (event.type) {
      case 0:
        return events_.publish(Numbered<0>{event.number}, options).has_value();
      case 1:
        return events_.publish(Numbered<1>{event.number}, options).has_value();
      default:
        return events_.publish(Numbered<2>{event.number}, options).has_value();
    }
  }
  void join(std::size_t who) override {
    switch (members_[who].type) {
      case 0:
        return registrations_.push_back(joined<0>(who));
      case 1:
        return registrations_.push_back(joined<1>(who));
      case 2:
        return registrations_.push_back(joined<2>(who));
      default:
        return registrations_.push_back(joined_for_all(who));
    }
  }
  void end(std::size_t who) override { registrations_[who].end(); }

  template <unsigned Type>
  EventRegistration joined(std::size_t who) {
    using T = Numbered<Type>;
    switch (members_[who].kind) {
      case Kind::handler:
        return events_.on([this, who](const T& event) { told(who, event.number); },
                          {.from = sources_[members_[who].source]});
      case Kind::before:
        return events_.before([this, who](const T& event) { return told(who, event.number); });
      case Kind::after:
        break;
    }
    return events_.after([this, who](const T& event) { told(who, event.number); });
  }
  EventRegistration joined_for_all(std::size_t who) {
    if (members_[who].kind == Kind::before) {
      return events_.before(
          [this, who](const AnyEvent& event) { return told(who, number_of(event)); });
    }
    return events_.after([this, who](const AnyEvent& event) { told(who, number_of(event)); });
  }
  static std::uint64_t number_of(const AnyEvent& event) {
    if (const auto* const smallest = event.as<Numbered<0>>()) return smallest->number;
    if (const auto* const middle = event.as<Numbered<1>>()) return middle->number;
    return event.as<Numbered<2>>()->number;
  }

  Events& events_;
  std::array<EventSource, sources> sources_;
  std::vector<EventRegistration> registrations_;
};

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_TEST_SEED");
  return given == nullptr ? 20'261'122 : std::strtoull(given, nullptr, 10);
}

class EventsModelTest : public EventsTest {
 protected:
  EventsModelTest() : EventsTest({.queued_max = queued_max}) {}
};

TEST_F(EventsModelTest, BothTellTheSame) {
  for (std::uint64_t run = seed(); run < seed() + 15; ++run) {
    SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(run));
    bus_.emplace(1, EventBusOptions{.queued_max = queued_max});
    Model model(run);
    Real real(run, *bus_, *loop_);
    std::mt19937_64 random(run);
    std::size_t told = 0;
    for (int round = 0; round < 60; ++round) {
      for (auto left = random() % 8; left > 0; --left) {
        const std::uint64_t what = random();
        const auto each = [&](World& world) {
          if (what % 4 == 0) return world.end_some(what / 4);
          if (world.members() < 100) world.add_some(what / 4);
        };
        each(model);
        each(real);
      }
      model.let_publish(100);
      real.let_publish(100);
      for (auto left = random() % 60; left > 0; --left) {
        const std::uint64_t what = random();
        model.publish_some(what);
        real.publish_some(what);
      }
      model.drain();
      settle();
      const auto expected = model.take_notes();
      ASSERT_EQ(real.take_notes(), expected) << "in round " << round;
      told += expected.size();
    }
    EXPECT_GT(told, 1000U) << "a test that tells nobody anything tests nothing";
  }
}

}  // namespace
}  // namespace weir
