# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems import cargo
from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Warpcc(CargoPackage):
    """Compiler cache and parallel driver for CUDA's nvcc. It runs the steps of
    a compile in parallel, and answers a repeated compile from disk without
    starting a compiler."""

    homepage = "@REPOSITORY@"
    url = "@REPOSITORY@/releases/download/v@VERSION@/warpcc-@VERSION@-source.tar.gz"

    tags = ["build-tools"]

    license("Apache-2.0 OR MIT")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("rust@1.90:", type="build")
    depends_on("c", type="build")

    # It traces compilers by the interface of glibc.
    requires("platform=linux", msg="warpcc runs on Linux only")


class CargoBuilder(cargo.CargoBuilder):
    # The launcher, and the program that it starts to reach shared caches and clusters.
    programs = ("crates/warpcc", "crates/remote")

    def build(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            for program in self.programs:
                pkg.module.cargo(
                    "install",
                    "--locked",
                    "--root",
                    "out",
                    "--path",
                    program,
                    *self.std_build_args,
                )

    def check(self):
        # The tests need CUDA toolkits, which are not dependencies.
        with working_dir(self.build_directory):
            Executable("out/bin/warpcc")("--version", "--verbose")
