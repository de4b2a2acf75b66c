# Fuzz targets of src/loss.
deeptail_fuzz(csv USES deeptail_loss)
