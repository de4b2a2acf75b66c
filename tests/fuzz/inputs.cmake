# Fuzz targets of src/inputs, src/events, src/estimators, src/truth and src/runs.
deeptail_fuzz(distribution USES deeptail_inputs)
deeptail_fuzz(probe USES deeptail_events)
deeptail_fuzz(temperatures USES deeptail_estimators)
deeptail_fuzz(truth_file USES deeptail_truth)
deeptail_fuzz(truth_hits USES deeptail_truth)
deeptail_fuzz(run_folder USES deeptail_runs)
deeptail_fuzz(suite USES deeptail_runs)
deeptail_fuzz(gguf USES deeptail_inputs)
