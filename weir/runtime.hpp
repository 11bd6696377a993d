// Umbrella header: loops on every core, messages between them, and the blocking pool.
#pragma once

#include "weir/runtime/checks/finding.hpp"
#include "weir/runtime/checks/machine_checks.hpp"
#include "weir/runtime/checks/machine_facts.hpp"
#include "weir/runtime/foreign_ptr.hpp"
#include "weir/runtime/health_check.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/messaging/overflow_policy.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/options.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/runtime/pool/pool_options.hpp"
#include "weir/runtime/pool/pool_report.hpp"
#include "weir/runtime/report.hpp"
#include "weir/runtime/runtime.hpp"
