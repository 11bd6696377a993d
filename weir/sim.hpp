// Public header of weir/sim: simulated hosts and networks for tests of services.
#pragma once

#include "weir/sim/faults.hpp"
#include "weir/sim/host.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/world.hpp"
#include "weir/sim/world_options.hpp"
#include "weir/testing/memory/memory_platform.hpp"
