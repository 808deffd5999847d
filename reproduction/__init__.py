"""The paper's experiments on real data: ``python -m reproduction`` prints every table.

A user of `ulr`, not a part of it: not installed, and built on its public names only.
"""
