// Compares CoreEvents with a simple model: handlers and interceptors publish, register, end each
// other and throw, in random order.
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

namespace weir::core_events_model_test {
namespace {

constexpr std::size_t capacity = 40;
constexpr unsigned types = 3;
constexpr unsigned any_type = types;
constexpr unsigned sources = 3;  // 0 is no particular source

enum class Kind : std::uint8_t { handler, before, after };

/// A registered handler or interceptor.
struct Member {
  Kind kind;
  unsigned type;    // any_type is for interceptors only
  unsigned source;  // of a handler; 0 accepts all
};

struct Event {
  std::uint64_t number;
  unsigned type;
  unsigned source;
  std::size_t priority;
};

/// A call of member `index` with event `number`, or a rejected event if index is `rejected`.
struct Delivery {
  static constexpr std::size_t rejected = ~std::size_t{0};
  std::size_t index;
  std::uint64_t number;
  bool operator==(const Delivery&) const = default;
  friend void PrintTo(const Delivery& delivery, std::ostream* out) {
    *out << delivery.index << "<-" << delivery.number;
  }
};

/// The actions of members and of the test, common to the model and the real system.
class TestSystem {
 public:
  explicit TestSystem(std::uint64_t seed) : seed_(seed) {}
  virtual ~TestSystem() = default;

  void publish_some(std::uint64_t random) {
    const Event event{numbers_++, static_cast<unsigned>(random % types),
                      static_cast<unsigned>(random / 8 % sources),
                      random / 64 % event_priority_count};
    if (!publish(event)) recorded_.push_back({Delivery::rejected, event.number});
  }
  void add_some(std::uint64_t random) {
    Member member{static_cast<Kind>(random % 3), static_cast<unsigned>(random / 8 % types),
                  static_cast<unsigned>(random / 64 % sources)};
    if (member.kind != Kind::handler && random / 512 % 2 == 0) member.type = any_type;
    members_.push_back(member);
    attach(members_.size() - 1);
  }
  void end_some(std::uint64_t random) {
    if (!members_.empty()) end(random % members_.size());
  }

  /// Performs the actions of member `index` for an event; the result counts for Kind::before.
  EventVerdict on_event(std::size_t index, std::uint64_t number) {
    recorded_.push_back({index, number});
    const std::uint64_t random = mixed(index, number);
    // The number of events is limited, so that the run ends.
    if (random % 7 == 0 && numbers_ < numbers_max_) publish_some(random / 16);
    if (random % 11 == 0 && members_.size() < 200) add_some(random / 16);
    if (random % 13 == 0) end_some(random / 16);
    if (random % 17 == 0) end(index);
    if (random % 19 == 0) throw std::runtime_error("it may");
    return random % 5 == 0 ? EventVerdict::veto : EventVerdict::pass;
  }

  void let_publish(std::uint64_t more) { numbers_max_ = numbers_ + more; }
  std::vector<Delivery> take_records() { return std::exchange(recorded_, {}); }
  std::size_t members() const { return members_.size(); }

 protected:
  /// Returns false if the event is rejected.
  virtual bool publish(const Event& event) = 0;
  /// Registers the last added member.
  virtual void attach(std::size_t index) = 0;
  virtual void end(std::size_t index) = 0;

  std::vector<Member> members_;

 private:
  std::uint64_t mixed(std::uint64_t index, std::uint64_t number) const {
    std::uint64_t bits = seed_ + index * 0x9E37'79B9'7F4A'7C15 + number * 0xBF58'476D'1CE4'E5B9;
    bits = (bits ^ bits >> 30) * 0xBF58'476D'1CE4'E5B9;
    bits = (bits ^ bits >> 27) * 0x94D0'49BB'1331'11EB;
    return bits ^ bits >> 31;
  }

  std::uint64_t seed_;
  std::uint64_t numbers_ = 0;
  std::uint64_t numbers_max_ = 0;
  std::vector<Delivery> recorded_;
};

// ---- The model ----------------------------------------------------------------------------------

class Model : public TestSystem {
 public:
  using TestSystem::TestSystem;

  void drain() {
    for (;;) {
      std::size_t priority = 0;
      while (priority < event_priority_count && waiting_[priority].empty()) ++priority;
      if (priority == event_priority_count) return;
      const Event event = waiting_[priority].front();
      waiting_[priority].pop_front();
      handle(event);
    }
  }

 private:
  bool publish(const Event& event) override {
    std::size_t waiting = 0;
    for (const auto& of_class : waiting_) waiting += of_class.size();
    if (waiting == capacity) return false;
    waiting_[event.priority].push_back(event);
    return true;
  }
  void attach(std::size_t) override { alive_.push_back(true); }
  void end(std::size_t index) override { alive_[index] = false; }

  void handle(const Event& event) {
    const std::size_t members = alive_.size();  // a new member gets the next event
    bool vetoed = false;
    for (const unsigned type : {any_type, event.type}) {
      for (std::size_t index = 0; index < members && !vetoed; ++index) {
        if (wants(index, Kind::before, type)) vetoed = tell(index, event) == EventVerdict::veto;
      }
    }
    for (std::size_t index = 0; index < members && !vetoed; ++index) {
      const unsigned source = members_[index].source;
      if (wants(index, Kind::handler, event.type) && (source == 0 || source == event.source)) {
        tell(index, event);
      }
    }
    for (const unsigned type : {event.type, any_type}) {
      for (std::size_t index = 0; index < members; ++index) {
        if (wants(index, Kind::after, type)) tell(index, event);
      }
    }
  }
  bool wants(std::size_t index, Kind kind, unsigned type) const {
    return alive_[index] && members_[index].kind == kind && members_[index].type == type;
  }
  EventVerdict tell(std::size_t index, const Event& event) {
    try {
      return on_event(index, event.number);
    } catch (const std::runtime_error&) {
      return EventVerdict::pass;
    }
  }

  std::array<std::deque<Event>, event_priority_count> waiting_;
  std::vector<bool> alive_;
};

// ---- The real system ----------------------------------------------------------------------------

/// Types of different sizes, for storage inside and outside of the queue.
template <unsigned Type>
struct Numbered {
  std::uint64_t number = 0;
  std::array<char, 100 * Type> padding{};
};
template <>
struct Numbered<0> {
  std::uint64_t number = 0;
};

class Real : public TestSystem {
 public:
  Real(std::uint64_t seed, EventBus& bus, Loop& loop) : TestSystem(seed), events_(bus.local(loop)) {
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
  void attach(std::size_t index) override {
    switch (members_[index].type) {
      case 0:
        return registrations_.push_back(joined<0>(index));
      case 1:
        return registrations_.push_back(joined<1>(index));
      case 2:
        return registrations_.push_back(joined<2>(index));
      default:
        return registrations_.push_back(joined_for_all(index));
    }
  }
  void end(std::size_t index) override { registrations_[index].end(); }

  template <unsigned Type>
  EventRegistration joined(std::size_t index) {
    using T = Numbered<Type>;
    switch (members_[index].kind) {
      case Kind::handler:
        return events_.on([this, index](const T& event) { on_event(index, event.number); },
                          {.from = sources_[members_[index].source]});
      case Kind::before:
        return events_.before(
            [this, index](const T& event) { return on_event(index, event.number); });
      case Kind::after:
        break;
    }
    return events_.after([this, index](const T& event) { on_event(index, event.number); });
  }
  EventRegistration joined_for_all(std::size_t index) {
    if (members_[index].kind == Kind::before) {
      return events_.before(
          [this, index](const AnyEvent& event) { return on_event(index, number_of(event)); });
    }
    return events_.after(
        [this, index](const AnyEvent& event) { on_event(index, number_of(event)); });
  }
  static std::uint64_t number_of(const AnyEvent& event) {
    if (const auto* const smallest = event.as<Numbered<0>>()) return smallest->number;
    if (const auto* const middle = event.as<Numbered<1>>()) return middle->number;
    return event.as<Numbered<2>>()->number;
  }

  CoreEvents& events_;
  std::array<EventSource, sources> sources_;
  std::vector<EventRegistration> registrations_;
};

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_TEST_SEED");
  return given == nullptr ? 20'261'122 : std::strtoull(given, nullptr, 10);
}

class EventsModelTest : public CoreEventsTest {
 protected:
  EventsModelTest() : CoreEventsTest({.capacity = capacity}) {}
};

TEST_F(EventsModelTest, CoreEventsBehaveLikeTheModel) {
  for (std::uint64_t run = seed(); run < seed() + 15; ++run) {
    SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(run));
    bus_.emplace(1, EventBusOptions{.capacity = capacity});
    Model model(run);
    Real real(run, *bus_, *loop_);
    std::mt19937_64 random(run);
    std::size_t told = 0;
    for (int round = 0; round < 60; ++round) {
      for (auto left = random() % 8; left > 0; --left) {
        const std::uint64_t what = random();
        const auto each = [&](TestSystem& world) {
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
      run_until_idle();
      const auto expected = model.take_records();
      ASSERT_EQ(real.take_records(), expected) << "in round " << round;
      told += expected.size();
    }
    EXPECT_GT(told, 1000U) << "too few calls to test anything";
  }
}

}  // namespace
}  // namespace weir::core_events_model_test
