"""The one error that a person's input can cause."""


class InputError(ValueError):
    """Something the user wrote cannot be used; the message names the field, the value and what is allowed."""
