"""The entities as people read them, and `RawEnv`, which drives them."""
