"""What agents write down."""


def write(name):
    print("noted by", name)
