// Umbrella header: what a machine gives and takes from a service.
#pragma once

#include "weir/base/result.hpp"
#include "weir/doctor/config_demands.hpp"
#include "weir/doctor/doctor.hpp"
