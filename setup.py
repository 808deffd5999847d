"""Builds the compiled inner loops; where there is no compiler, NumPy does what they do."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

loops = Extension(
    "ulr.refine._loops",
    ["src/ulr/refine/_loops.pyx"],
    depends=["src/ulr/refine/_lanes.h"],
    extra_compile_args=["/O2"] if os.name == "nt" else ["-O3"],
    optional=True,
)
setup(ext_modules=cythonize([loops]))
