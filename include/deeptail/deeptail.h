// All of deeptail, in the order in which data flows through it.
#pragma once

#include "deeptail/core.h"
#include "deeptail/enum_names.h"
#include "deeptail/watch.h"

#include "deeptail/hub.h"
#include "deeptail/patterns.h"
#include "deeptail/tensors.h"
#include "deeptail/text.h"

#include "deeptail/compute.h"
#include "deeptail/device.h"
#include "deeptail/model.h"
#include "deeptail/target.h"

#include "deeptail/sampling.h"

#include "deeptail/build_distribution.h"
#include "deeptail/inputs.h"
#include "deeptail/law.h"
#include "deeptail/load.h"

#include "deeptail/continuation.h"
#include "deeptail/event.h"

#include "deeptail/activations.h"
#include "deeptail/prior.h"

#include "deeptail/any_particles.h"
#include "deeptail/closed_form.h"
#include "deeptail/kernels.h"
#include "deeptail/splitting.h"

#include "deeptail/all_tokens.h"
#include "deeptail/estimators.h"
#include "deeptail/forecast.h"
#include "deeptail/ga_amls.h"
#include "deeptail/itgis.h"
#include "deeptail/method_rows.h"
#include "deeptail/methods.h"
#include "deeptail/mhis.h"
#include "deeptail/payoff.h"
#include "deeptail/qld.h"
#include "deeptail/question.h"
#include "deeptail/split.h"
#include "deeptail/temperatures.h"
#include "deeptail/trajectory.h"

#include "deeptail/loss.h"

#include "deeptail/truth.h"

#include "deeptail/runs.h"
#include "deeptail/tune.h"

#include "deeptail/report.h"
