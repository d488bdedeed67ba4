"""Stands for a model provider's client library; it is not the agents' code."""


class RateLimitError(Exception):
    pass


def ask():
    raise RateLimitError("429 Too Many Requests: the limit of this minute is reached")
