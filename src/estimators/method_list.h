// The row of every method, and the settings that several of them take.
#pragma once

#include "deeptail/methods.h"
#include "estimators/setting_reader.h"

namespace deeptail {

// Each beside its method, or in <method>_row.cpp.
extern const MethodRow kTokensplitRow, kAllTokensRow, kAutoRow, kPayoffRow, kStaticRow, kTrajectoryRow,
    kForecastRow, kGaAmlsRow, kQldRow, kQldArcRow, kGldRow, kItgisRow, kMhisRow, kMcRow;

inline constexpr SettingRow kBudget{
    .key = "budget",
    .help = "Forward passes (their equivalent in flops; itgis, mhis: samples), such as 2^16 or 1e6",
    .about_work = true};
inline constexpr SettingRow kReplicas{.key = "replicas", .help = "Independent replicas", .about_work = true};
inline constexpr SettingRow kDevice{.key = "device",
                                    .help = "cpu, or cuda where it is built in",
                                    .kind = SettingKind::kChoice,
                                    .words = EnumNames<Device>::kAll,
                                    .usual = "cpu",
                                    .about_work = true};
inline constexpr SettingRow kParticles{.key = "particles", .help = "Particles per replica"};
inline constexpr SettingRow kMovesPerLevel{.key = "moves", .help = "Moves per level (tokensplit: at most)"};
inline constexpr SettingRow kCalibration{
    .key = "calibration", .help = "Activations that are captured", .usual = "2^16"};
inline constexpr SettingRow kTemperature{
    .key = "temperature",
    .help = "Lower follows the gradient more; default: the shipped table's, or 1",
    .kind = SettingKind::kNumber};

// Of methods on activations.
inline constexpr const SettingRow* kCloudSettings[] = {&kCalibration};
std::uint64_t take_calibration(SettingReader& s);

// Of methods that look for a pattern in sampled texts, and whose budget is counted in these: 0 is their default.
// Fewer texts than so many say nothing of their own spread.
inline constexpr double kFewestTexts = 100.0;
void check_text_budget(double budget, std::string_view method);
std::uint64_t texts_of(double budget, const Question& question);
Method pattern_method(double budget, decltype(Method::run) run);

// Of methods with a temperature: the one that was set, or the shipped table's for this model and
// distribution.
double temperature_of(double set, std::string_view method, const Question& question);
std::function<void(const Question&, SettingValues&)> settle_temperature(double set, std::string_view method);
void tell_temperature(Estimate& estimate, double temperature);

}  // namespace deeptail
