"""What set-up tells a person when it cannot go on."""


class SetupFailureError(Exception):
    """One or more sentences of the form `<what was found>; <what to do>`, printed without a traceback."""

    def __init__(self, *sentences):
        super().__init__("\n".join(sentences))
        self.sentences = sentences
