// Gather starts the tasks of a group and handles their ends.
#include "weir/task/combinators.hpp"

namespace weir::detail {

constinit const Continuation::Kind Gather::member_kind{&completed, &waiting_for};

bool Gather::start(std::coroutine_handle<> waiting, const Context& context,
                   std::span<Member> members, Run::StartOne start_one) {
  waiting_ = waiting;
  source_.emplace(context.cancel);
  const Context own{context.loop, &*source_};
  running_ = 1;  // for this function, so that no task resumes the waiter before it ends
  for (std::size_t index = 0; index < members.size() && !decided_; ++index) {
    members[index].gather_ = this;
    members[index].index_ = index;
    ++running_;
    start_one(state_, index, own, members[index]);
  }
  return --running_ != 0;
}

std::coroutine_handle<> Gather::completed(Continuation& self, std::coroutine_handle<>) {
  auto& member = static_cast<Member&>(self);
  Gather& gather = *member.gather_;
  if (!gather.decided_ && gather.rule_(gather.state_, member.index_)) {
    gather.decided_ = true;
    gather.source_->cancel();
  }
  if (--gather.running_ != 0) return std::noop_coroutine();
  return loop::CurrentActivity::transfer_to(gather.waiting_);
}

std::coroutine_handle<> Gather::waiting_for(const Continuation& self) noexcept {
  return static_cast<const Member&>(self).gather_->waiting_;
}

}  // namespace weir::detail
