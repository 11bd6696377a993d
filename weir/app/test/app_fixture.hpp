// Test fixture: an app on one in-memory loop, and services that write a journal. It is included by
// tests only, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {

/// The journal of test services. All its dependants share its lines, on one thread.
class Journal {
 public:
  explicit Journal(std::vector<std::string>& lines) : lines_(lines) {}
  void write(std::string line) const { lines_.push_back(std::move(line)); }

 private:
  std::vector<std::string>& lines_;
};

/// A base of test services that writes when it is made and destroyed.
class JournaledService {
 public:
  JournaledService(const Journal& journal, std::string name)
      : journal_(journal), name_(std::move(name)) {
    write("made");
  }
  ~JournaledService() { write("gone"); }
  JournaledService(const JournaledService&) = delete;
  JournaledService& operator=(const JournaledService&) = delete;

 protected:
  void write(const std::string& what) const { journal_.write(name_ + " " + what); }

 private:
  const Journal& journal_;
  std::string name_;
};

class AppTest : public LoopTest {
 protected:
  void SetUp() override {
    app_.shared([this] { return Journal(lines_); });
  }

  Result<> start() { return run(app_.start()); }
  void stop() { run(app_.stop()); }

  bool has_line(const std::string& line) const {
    return std::ranges::find(lines_, line) != lines_.end();
  }
  /// Returns the position of the line; a missing line fails the test.
  std::size_t at(const std::string& line) const {
    const auto found = std::ranges::find(lines_, line);
    EXPECT_NE(found, lines_.end()) << line;
    return static_cast<std::size_t>(found - lines_.begin());
  }
  void expect_order(const std::vector<std::string>& lines) const {
    for (std::size_t i = 1; i < lines.size(); ++i) {
      EXPECT_LT(at(lines[i - 1]), at(lines[i])) << lines[i - 1] << " before " << lines[i];
    }
  }

  std::vector<std::string> lines_;
  App app_;
};

}  // namespace weir
