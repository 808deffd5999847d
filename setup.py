"""Builds the compiled inner loops; where there is no compiler, NumPy does what they do."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

loops = Extension(
    "ulr.refine._loops",
    ["src/ulr/refine/_loops.pyx"],
    depends=["src/ulr/refine/_lanes.h"],
    extra_compile_args=["/O2"] if os.name == "nt" else ["-O3", "-g0"],
)
extensions = cythonize([loops])
for extension in extensions:
    extension.optional = True  # set here, since cythonize makes extensions of its own
setup(ext_modules=extensions)
