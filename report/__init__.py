"""Tables and pictures of what an evaluation found."""
