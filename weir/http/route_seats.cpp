#include "weir/http/route_seats.hpp"

namespace weir::http {

RouteSeats::RouteSeats(std::span<Loop* const> loops, Duration wait_max)
    : size_(loops.size()), wait_max_(wait_max), seats_(std::make_unique<RouteSeat[]>(size_)) {
  for (std::size_t core = 0; core < size_; ++core) seats_[core].loop_ = loops[core];
}

}  // namespace weir::http
