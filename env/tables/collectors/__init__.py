"""The four collectors of Caribou's design document: each makes all rows of its own tables.

They take the tables so far, the inputs of the command, the settings and the hour that it is, and
raise InputError for inputs that they cannot read or that lack what is needed.
"""
