"""What every room stands on: errors, reading files safely, schemas."""
