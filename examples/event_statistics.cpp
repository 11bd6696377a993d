// event_statistics: publishes orders as events. An interceptor vetoes empty orders, and a handler
// ships the others. Statistics count the events of each type and measure how long they took.
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

void print(const EventSummary& summary) {
  std::printf("%s: %ld events, min %ld ns, average %ld ns, max %ld ns, p99 %ld ns\n",
              std::string(summary.type).c_str(), long(summary.count), long(summary.minimum.count()),
              long(summary.average.count()), long(summary.maximum.count()),
              long(summary.p99.count()));
}

Task<Result<>> trade(Scope& scope, EventBus& bus, int orders) {
  CoreEvents& events = bus.local(scope.loop());
  ManualResetEvent closed;
  const EventStatistics statistics(events);
  const auto checking = events.before(check);
  const auto shipping = events.on([&](const Order& order) {
    const EventOptions urgent{.priority = EventPriority::urgent};
    if (!events.publish(Shipped{order.number}, urgent)) std::puts("not shipped: the queue is full");
  });
  const auto closing = events.on([&](const ClosingTime&) { closed.set(); });
  for (int number = 1; number <= orders; ++number)
    if (auto sent = events.publish(Order{number, number % 10}); !sent) co_return sent;
  const EventOptions last{.priority = EventPriority::low};
  if (auto sent = events.publish(ClosingTime(), last); !sent) co_return sent;
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
