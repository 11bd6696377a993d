#include "tools/weir/top_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace weir::top {
namespace {

enum class Colour { none, faint, good, warning, bad };

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string count_text(double value) {
  if (value >= 1e6) return formatted("%.2fM", value / 1e6);
  if (value >= 1e4) return formatted("%.1fk", value / 1e3);
  return formatted(value < 10 ? "%.1f" : "%.0f", value);
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return formatted("%.0f us", seconds * 1e6);
  if (seconds < 1) return formatted("%.1f ms", seconds * 1e3);
  return formatted("%.1f s", seconds);
}

std::string safe(std::string_view text) {
  std::string out;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    // A terminal that does not expect UTF-8 could take other bytes as control characters.
    out += byte >= 0x20 && byte < 0x7f ? each : '?';
  }
  return out;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() > width) text.resize(width);
  text.append(width - text.size(), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// Collects lines of parts with colours, and cuts them at the width of the screen.
class Picture {
 public:
  explicit Picture(const Screen& screen) : screen_(screen) {}

  void add(std::string_view text, Colour colour = Colour::none) {
    const std::string_view part =
        text.substr(0, screen_.columns - std::min(screen_.columns, used_));
    used_ += part.size();
    if (colour == Colour::none || !screen_.colours) {
      line_ += part;
      return;
    }
    constexpr std::array<std::string_view, 5> codes{"", "\x1b[2m", "\x1b[32m", "\x1b[33m",
                                                    "\x1b[31;1m"};
    line_.append(codes[static_cast<std::size_t>(colour)]).append(part).append("\x1b[0m");
  }
  void end_line() {
    if (lines_ + 1 < std::max<std::size_t>(screen_.lines, 2)) {
      text_ += line_ + "\n";
      ++lines_;
    }
    line_.clear();
    used_ = 0;
  }
  void title(std::string_view text) {
    end_line();
    add(text, Colour::faint);
    end_line();
  }
  std::string take() { return std::move(text_); }

 private:
  const Screen& screen_;
  std::string text_;
  std::string line_;
  std::size_t used_ = 0;
  std::size_t lines_ = 0;
};

Colour colour_of(double busy) {
  return busy >= 0.9 ? Colour::bad : (busy >= 0.7 ? Colour::warning : Colour::good);
}

void draw_summary(Picture& picture, const Overview& overview) {
  const Summary& now = overview.summary;
  picture.add(safe(overview.title) + "  ");
  picture.add(count_text(now.requests_per_second) + " requests/s  ");
  picture.add(formatted("%.0f %% busy  ", now.busy * 100), colour_of(now.busy));
  picture.add(std::to_string(now.connections) + " connections  ");
  if (now.resident_bytes) {
    picture.add(formatted("%.0f MiB  ", static_cast<double>(*now.resident_bytes) / (1 << 20)));
  }
  picture.add(std::to_string(now.slow_turns) + " slow turns",
              now.slow_turns > 0 ? Colour::warning : Colour::none);
  picture.end_line();
  for (const Finding& each : overview.findings) {
    picture.add("! " + safe(each.finding), Colour::bad);
    picture.end_line();
  }
}

void draw_cores(Picture& picture, const Cores& cores, std::size_t columns) {
  picture.title("core  busy");
  const std::size_t width = std::clamp<std::size_t>(columns, 60, 120) - 60;
  for (const Core& each : cores.cores) {
    const double busy = std::clamp(each.busy, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(busy * static_cast<double>(width) + 0.5);
    picture.add(right(std::to_string(each.core), 4) + "  [");
    picture.add(std::string(full, '#'), colour_of(busy));
    picture.add(std::string(width - full, '.'), Colour::faint);
    picture.add("] " + right(formatted("%.0f %%", busy * 100), 5) +
                right(count_text(each.requests_per_second), 9) + "/s" +
                right(std::to_string(each.streams), 7) + " open  ");
    if (each.state != "answers") picture.add(safe(each.state), Colour::bad);
    picture.end_line();
  }
}

void draw_routes(Picture& picture, const Routes& routes) {
  picture.title(padded("route", 40) + right("/s", 10) + right("p50", 10) + right("p99", 10));
  std::vector<Route> sorted = routes.routes;
  std::ranges::sort(sorted, std::ranges::greater(), &Route::requests_per_second);
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 10); ++i) {
    const Route& each = sorted[i];
    const auto time = [](const std::optional<double>& seconds) {
      return right(seconds ? seconds_text(*seconds) : "-", 10);
    };
    picture.add(padded(safe(each.route), 40) + right(count_text(each.requests_per_second), 10) +
                time(each.p50_seconds) + time(each.p99_seconds));
    picture.end_line();
  }
}

void draw_pools(Picture& picture, const Pools& pools) {
  if (pools.pools.empty()) return;
  picture.title(padded("pool", 20) + right("threads", 8) + right("running", 9) +
                right("queued", 8));
  for (const Pool& each : pools.pools) {
    picture.add(padded(safe(each.name), 20) + right(std::to_string(each.size), 8) +
                right(std::to_string(each.running), 9) + right(std::to_string(each.queued), 8) +
                "  ");
    picture.add(safe(each.state), each.state == "saturated" ? Colour::bad : Colour::good);
    picture.add("  " + safe(each.reason), Colour::faint);
    picture.end_line();
  }
}

void draw_slow_turns(Picture& picture, const SlowTurnList& slow_turns) {
  if (slow_turns.slow_turns.empty()) return;
  picture.title(right("slow turns", 10) + right("recent", 8) + right("longest", 10) + "  cause");
  for (const SlowTurn& each : slow_turns.slow_turns) {
    picture.add(right(std::to_string(each.turns), 10) + right(std::to_string(each.recent), 8) +
                    right(seconds_text(each.longest_seconds), 10) + "  " + safe(each.cause),
                each.recent > 0 ? Colour::bad : Colour::none);
    picture.end_line();
  }
}

}  // namespace

std::string draw(const Snapshot& snapshot, const Screen& screen) {
  Picture picture(screen);
  if (!snapshot.error.empty()) {
    picture.add(safe(snapshot.error), Colour::bad);
    picture.end_line();
    return picture.take();
  }
  draw_summary(picture, snapshot.overview);
  draw_cores(picture, snapshot.cores, screen.columns);
  if (snapshot.routes) draw_routes(picture, *snapshot.routes);
  draw_pools(picture, snapshot.pools);
  draw_slow_turns(picture, snapshot.slow_turns);
  return picture.take();
}

}  // namespace weir::top
