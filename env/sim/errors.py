"""The one exception for bad input, whatever it comes from."""


class InputError(ValueError):
    """Bad input of a user.

    Its text is one line that names the place (file and key, or argument), what was found and what
    is allowed. The entry points print it and leave with exit code 2.
    """
