# Fuzz targets of src/inputs, src/estimators and src/bench.
deeptail_fuzz(distribution USES deeptail_inputs)
deeptail_fuzz(temperatures USES deeptail_estimators)
deeptail_fuzz(truth_file USES deeptail_bench)
deeptail_fuzz(run_folder USES deeptail_bench)
deeptail_fuzz(suite USES deeptail_bench)
