// The pools of a process, for reports.
#pragma once

#include <string>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/pool/pool_report.hpp"

namespace weir {

class PoolThreads;

/// The report of a pool with BlockingPoolOptions::name. A further pool with that name is called
/// "name 2", and so on.
struct NamedPoolReport {
  std::string name;
  PoolReport report;
};

/// Returns the reports of the pools of a platform, the oldest first.
/// Errors: throws std::bad_alloc.
/// Threads: any.
std::vector<NamedPoolReport> report_on_pools(const loop::Platform& platform);

/// Adds a pool to the list.
/// Errors: throws std::bad_alloc.
void add_to_pools(const PoolThreads& pool, const loop::Platform& platform, const std::string& name);
/// Removes a pool from the list. Returns when no thread reports on it any more.
void remove_from_pools(const PoolThreads& pool) noexcept;

}  // namespace weir
