/* The texts by which warpcc knows the programs that the fake ones stand for: crates/engine/src/known_programs/marks.rs. */

/* One that walks over the list of all variables has none: it is another program under a compiler's name. */
#ifndef WALKS
const char *const marks[] __attribute__((used)) = {
    "nvcc.profile", "cudafe1.stub.c",
    "DEFAULT_EDG_BASE", "__nv_dl_wrapper_t<",
    "EDG_MAIN", "__nvvm_prmt",
    "PTX .version %s does not support .target %s", "Instruction '%s%s%s%s' requires .target sm_%d or higher",
    "Cuda fat binary constructor", "#undef __FATIDNAME_CORE\n",
    "elfLink fatbinary error", "nvlink -extract %s -m%d -arch=%s -o %s\n",
    "Using built-in specs.\n", "rename spec %s to %s\n",
    "unrecognizable insn:", "insn does not satisfy its constraints:",
    "collect2 version %s\n", "COLLECT_GCC_OPTIONS = %s\n",
    "cfi_remember_state", "noaltmacro",
    "LDEMULATION", "using internal linker script:",
    "two different operation options specified", "`u' is only meaningful with the `r' option.",
};
#endif
