"""What agents send."""


class Frame:
    def __init__(self, text):
        self.text = text

    def data(self):
        return self.text.encode()
