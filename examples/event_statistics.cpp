// event_statistics: orders are events. An interceptor vetoes the empty ones, a handler ships the
// others, and statistics tell how many events of each type there were and how long they took.
#include <weir/event/bus.hpp>
#include <weir/event/statistics.hpp>
#include <weir/runtime/runtime.hpp>
#include <weir/task/sync/event.hpp>

#include <cstdio>
#include <cstdlib>

using namespace weir;

struct Order {
  int number = 0;
  int pieces = 0;
};
struct Shipped {
  int order = 0;
};
struct ClosingTime {};

EventVerdict check(const Order& order) {
  return order.pieces == 0 ? EventVerdict::veto : EventVerdict::pass;
}

void print(const EventSummary& of) {
  std::printf("%s: %ld events, min %ld ns, average %ld ns, max %ld ns, p99 %ld ns\n",
              std::string(of.type).c_str(), long(of.count), long(of.minimum.count()),
              long(of.average.count()), long(of.maximum.count()), long(of.p99.count()));
}

Task<Result<>> trade(Scope& scope, EventBus& bus, int orders) {
  Events& events = bus.local(scope.loop());
  CoreManualResetEvent closed;
  const EventStatistics statistics(events);
  const auto checking = events.before(check);
  const auto shipping = events.on([&](const Order& order) {
    const EventOptions urgently{.priority = EventPriority::urgent};
    if (!events.publish(Shipped{order.number}, urgently)) std::puts("cannot ship any more");
  });
  const auto closing = events.on([&](const ClosingTime&) { closed.set(); });
  for (int number = 1; number <= orders; ++number)
    if (auto told = events.publish(Order{number, number % 10}); !told) co_return told;
  const EventOptions at_last{.priority = EventPriority::low};
  if (auto told = events.publish(ClosingTime(), at_last); !told) co_return told;
  if (auto waited = co_await closed.wait(); !waited) co_return waited;
  for (const EventSummary& each : statistics.all()) print(each);
  std::printf("vetoed: %ld\n", long(events.counters().vetoed.value()));
  co_return {};
}

int main(int argc, char** argv) {
  EventBus bus(1);
  const int orders = argc > 1 ? std::atoi(argv[1]) : 1000;
  const RuntimeOptions options{.cores = 1};
  return Runtime(options).run_on_each_core(trade, std::ref(bus), orders);
}
