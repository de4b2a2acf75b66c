# Fuzz targets of src/inputs and src/bench.
deeptail_fuzz(distribution USES deeptail_inputs)
deeptail_fuzz(truth_file USES deeptail_bench)
deeptail_fuzz(run_folder USES deeptail_bench)
