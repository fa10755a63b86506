#!/bin/sh
# Records what nvcc --dryrun prints for every line of transcripts/modes.txt:
#
#     ./record.sh /path/to/nvcc NAME     # NAME: the toolkit's folder under transcripts/
#
# Nothing of this machine is left in the texts: the toolkit is /toolkit, the working directory
# /work/project, PATH what nvcc adds to /usr/bin, the host compiler whatever gcc 12 is called.
set -eu

nvcc=$(realpath "$1")
toolkit=$(dirname "$(dirname "$nvcc")")
here=$(dirname "$(realpath "$0")")/transcripts
mkdir -p "$here/$2"

project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cd "$project"
mkdir 'sp dir' out
# A dry run only asks whether they are there.
touch a.cu b.cu host.cpp mid.ptx mid.cubin x.o y.o 'sp dir/é ü.cu' '$x.cu' "it's.cu"

unset NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS NVCC_CCBIN LD_LIBRARY_PATH
grep -v '^#' "$here/modes.txt" | while read -r name arguments; do
    case $name in
        # Recorded once: the order is another one each time.
        threads*) [ ! -e "$here/$2/$name.txt" ] || continue ;;
    esac
    case $name in
        keep*) private= ;; # The user keeps the files where he is.
        *) private='--keep --keep-dir /keep/K' ;;
    esac
    PATH=/usr/bin eval "\"$nvcc\" --dryrun $private $arguments" 2>"$project/recorded" || {
        # This one lacks an option or an architecture. Its words for that are not kept.
        echo "$name: $(tail -n 1 "$project/recorded")" >&2
        echo refused >"$project/recorded"
    }
    # The names that -t gives its redirections are random, and a module id may be made of a path.
    sed -e "s|$toolkit|/toolkit|g" -e "s|$project|/work/project|g" \
        -e 's|/tmp/tmpxft_[-0-9a-f_]*|/tmp/tmpxft_0_|g' \
        -e "s|$(echo "$project" | tr /. __)|_work_project|g" \
        "$project/recorded" >"$here/$2/$name.txt"
done
