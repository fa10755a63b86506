//! The purpose of an ELF file's sections, by their names.

/// The purpose of a host file's section, if CUDA put it there or it matters here.
pub fn host_section(name: &str) -> &'static str {
    match name {
        ".nv_fatbin" => "the fat binary: what the driver loads",
        "__nv_relfatbin" => "relocatable fat binaries: input of a device link",
        ".nvFatBinSegment" => "the wrappers, by which the runtime finds fat binaries",
        "__nv_module_id" => "module ids: which objects there are, and which were linked",
        ".nvHRKE" | ".nvHRKI" => "names of kernels that the host code refers to",
        ".nvHRDE" | ".nvHRDI" => "names of device variables that the host code refers to",
        ".nvHRCE" | ".nvHRCI" => "names of constant variables that the host code refers to",
        ".init_array" | ".ctors" => "pointers to what runs before main",
        ".preinit_array" => "pointers to what runs before that",
        ".fini_array" | ".dtors" => "pointers to what runs after main",
        ".text" => "the host's machine code",
        ".data" => "variables with a value",
        ".bss" => "variables that begin as zero",
        ".rodata" => "constants",
        ".dynamic" => "what the loader has to know",
        _ => "",
    }
}

/// The purpose of a cubin's section.
pub fn cubin_section(name: &str) -> &'static str {
    let known: [(&str, &str); 17] = [
        (".text.", "a function's machine code"),
        (".nv.info.", "a function's attributes: parameters, bounds"),
        (".nv.info", "attributes of all functions: registers, stack"),
        (
            ".nv.constant0.",
            "a kernel's constant bank: launch dimensions and parameters",
        ),
        (".nv.constant", "constants"),
        (
            ".nv.shared.",
            "static shared memory of a kernel; no bytes in the file",
        ),
        (".nv.global.init", "global variables with a value"),
        (".nv.global", "global variables that begin as zero"),
        (".nv.callgraph", "who calls whom, for the size of the stack"),
        (".nv.compat", "what the code asks of a GPU"),
        (".note.nv", "notes: toolkit and options"),
        (".debug_", "debug information"),
        (
            ".nv.rel.action",
            "what a linker does with each kind of relocation",
        ),
        (".rel", "relocations: addresses to fill in"),
        (".nv.prototype", "signatures of functions"),
        (".symtab", "symbols"),
        (".nv_debug", "debug information"),
    ];
    let found = known.iter().find(|(prefix, _)| name.starts_with(prefix));
    match name {
        ".strtab" | ".shstrtab" => "names",
        _ => found.map_or("", |(_, meaning)| meaning),
    }
}
