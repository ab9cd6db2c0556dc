"""A program that does its work in another module."""

from train import step

if __name__ == "__main__":
    step()
