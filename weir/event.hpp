// Umbrella header for typed events between the parts of a program.
#pragma once

#include "weir/event/bus.hpp"
#include "weir/event/core_events.hpp"
#include "weir/event/event.hpp"
#include "weir/event/statistics.hpp"
