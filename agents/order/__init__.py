"""Orders: which submitted function is placed next."""
