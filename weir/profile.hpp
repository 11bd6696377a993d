// Umbrella header: CPU profiles of a running service.
#pragma once

#include "weir/base/result.hpp"
#include "weir/profile/profile.hpp"
