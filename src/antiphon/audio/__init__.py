"""Audio processing: samples, files, resampling, and the models for voice activity and end of turn."""
