// Compares the reports of a runtime with each other.
#include "tools/simulate/runtime_monitor.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

struct Count {
  std::string_view name;
  std::uint64_t CoreReport::* value;
};
constexpr std::array counts = {
    Count{"turns", &CoreReport::turns},
    Count{"runs", &CoreReport::runs},
    Count{"received", &CoreReport::received},
    Count{"accepts", &CoreReport::accepts},
    Count{"bytes received", &CoreReport::bytes_received},
    Count{"bytes sent", &CoreReport::bytes_sent},
    Count{"handed over", &CoreReport::handed_over},
    Count{"taken over", &CoreReport::taken_over},
    Count{"accept pauses", &CoreReport::accept_pauses},
};

}  // namespace

RuntimeMonitor::Attachment::Attachment(RuntimeMonitor* watch, const Runtime& runtime)
    : watch_(watch) {
  if (watch_ != nullptr) watch_->runtime_ = &runtime;
}

RuntimeMonitor::Attachment::~Attachment() {
  if (watch_ == nullptr) return;
  watch_->last_ = watch_->runtime_->report();
  watch_->runtime_ = nullptr;
}

std::string RuntimeMonitor::find_violation() {
  if (runtime_ == nullptr || ++turns_ % options_.turns != 0) return {};
  return look();
}

std::string RuntimeMonitor::look() {
  RuntimeReport now = runtime_->report();
  const CoreReport sum = now.total();
  if (options_.connections_max != 0 && now.connections > options_.connections_max) {
    return std::to_string(now.connections) + " connections";
  }
  if (options_.look) {
    if (std::string violation = options_.look(now); !violation.empty()) return violation;
  }
  if (sum.taken_over > sum.handed_over) return "more connections taken over than handed over";
  if (last_ && last_->cores.size() == now.cores.size()) {
    for (std::size_t core = 0; core < now.cores.size(); ++core) {
      for (const Count& each : counts) {
        if (now.cores[core].*each.value < last_->cores[core].*each.value) {
          return std::string(each.name) + " of core " + std::to_string(core) + " has decreased";
        }
      }
    }
  }
  last_ = std::move(now);
  return {};
}

}  // namespace weir::simulate
