# Both programs, from the checkout that this file is in.
{ lib, rustPlatform }:
rustPlatform.buildRustPackage {
  pname = "warpcc";
  version = (lib.importTOML ../../Cargo.toml).workspace.package.version;

  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  cargoBuildFlags = [
    "--package=warpcc"
    "--package=warpcc-remote"
  ];
  # They need CUDA toolkits from PyPI.
  doCheck = false;

  postInstall = ''
    mkdir -p $out/lib/warpcc $out/share/man/man1
    ln -s ../../bin/warpcc $out/lib/warpcc/nvcc
    $out/bin/warpcc man $out/share/man/man1
  '';

  meta = {
    description = "Compiler cache and parallel driver for CUDA's nvcc";
    license = with lib.licenses; [
      asl20
      mit
    ];
    mainProgram = "warpcc";
    platforms = [
      "x86_64-linux"
      "aarch64-linux"
    ];
  };
}
