# `nix-build packaging/nix` in a checkout.
{
  pkgs ? import <nixpkgs> { },
}:
pkgs.callPackage ./package.nix { }
