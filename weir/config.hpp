// Umbrella header for configuration from files, the environment and the command line.
#pragma once

#include "weir/config/config.hpp"
#include "weir/config/reload.hpp"
#include "weir/config/source/error.hpp"
#include "weir/config/source/sources.hpp"
#include "weir/config/values.hpp"
