# What `cargo xtask dist-try` does in a root. The lines with @ are replaced by the commands of docs/install.md.
# Each step has a deadline: before glibc 2.34 the watch library once hung every cicc.
say() { echo "== $*"; }
fail() { echo "FAILED: $*"; exit 1; }
say "$(. /etc/os-release; echo "$PRETTY_NAME"), $(ldd --version | head -n 1), $(g++ --version | head -n 1)"
command -v warpcc && fail "warpcc is here before it is installed"
command -v warpcc-remote && fail "warpcc-remote is here before it is installed"

say install
# @INSTALL@
command -v warpcc || fail "no warpcc in PATH"

say after installing
# @AFTER@

say "compare with nvcc --keep"
flags="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"
mkdir keep && nvcc $flags --keep --keep-dir keep -c saxpy.cu -o theirs.o
timeout 300 warpcc nvcc $flags -c saxpy.cu -o cold.o
cmp theirs.o cold.o
said=$(WARPCC_LOG=stderr timeout 60 warpcc nvcc $flags -c saxpy.cu -o hit.o 2>&1)
echo "$said"
case $said in *"direct hit"*) ;; *) fail "the second compile did not hit" ;; esac
cmp theirs.o hit.o

say "a program with device code of two files, linked"
echo 'int main() { return 0; }' > main.cu
timeout 300 warpcc nvcc -rdc=true saxpy.cu main.cu -o app
./app

say explain
timeout 300 warpcc explain nvcc -c saxpy.cu > explained.txt
head -n 3 explained.txt
[ "$(wc -l < explained.txt)" -gt 20 ] || fail "explain said next to nothing"

say doctor
status=0; timeout 300 warpcc doctor || status=$?
[ $status -le 1 ] || fail "doctor found an error"

say "shared caches: what one cache gave, another gets"
mkdir shared
export WARPCC_REMOTE="file:$PWD/shared"
timeout 60 warpcc remote ping || fail "warpcc-remote is not used"
for cache in one other; do
    said=$(WARPCC_DIR="$PWD/$cache" WARPCC_LOG=stderr timeout 300 warpcc nvcc $flags -c saxpy.cu -o shared.o 2>&1)
    echo "$said"
    cmp theirs.o shared.o
    WARPCC_DIR="$PWD/$cache" timeout 60 warpcc remote upload
done
case $said in *hit*) ;; *) fail "the shared cache gave nothing" ;; esac
find shared -type f | grep -q . || fail "the shared cache got nothing"
unset WARPCC_REMOTE
rm -r shared one other

say "bypassed calls"
warpcc stats | grep -E '^  bypassed +0$' || { warpcc stats; fail "calls were bypassed"; }

say under the name nvcc
# @NAMED_NVCC@

say remove
# @REMOVE@
hash -r
command -v warpcc && fail "warpcc is still in PATH"
command -v warpcc-remote && fail "warpcc-remote is still in PATH"

say what is left
ls -A /dev/shm /tmp /root | sed 's/^/  /'
# @CACHE@
rm -rf venv
find /dev/shm /tmp /root -type f -mindepth 1 | grep . && fail "something is left there"
say done
