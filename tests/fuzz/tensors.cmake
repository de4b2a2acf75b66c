# Fuzz targets of src/tensors.
deeptail_fuzz(safetensors USES deeptail_tensors)
deeptail_fuzz(safetensors_index USES deeptail_tensors)
deeptail_fuzz(pickle_zip USES deeptail_tensors)
deeptail_fuzz(npy USES deeptail_tensors)
