//! Tests each mode of nvcc: the explanation agrees with the results of other programs for the same files.

use std::path::Path;

use warpcc_explain::{CommandOutcome, Explanation, FileExplanation, FileState, Role};

use super::space::{TestSpace, Toolkit};
use super::{
    KERNEL, TWO, column, explain, explanation, fact, file, kept_text, oracle, reference, steps,
    table, words,
};

/// Asserts what every explanation of a successful compilation must have.
fn demand_whole(explanation: &Explanation) {
    assert_eq!(explanation.exit_code, 0);
    for step in &explanation.steps {
        assert_eq!(step.outcome, CommandOutcome::Ran, "{}", step.title);
        for option in &step.options {
            assert!(option.known, "{}: {}", step.tool, option.words);
        }
        let new: Vec<&str> = step
            .tree
            .iter()
            .filter(|row| row.state != FileState::Old)
            .map(|row| row.path.as_str())
            .collect();
        let mut written: Vec<&str> = step.writes.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(new.len(), written.len(), "{}", step.title);
        written.retain(|path| !new.contains(path));
        assert_eq!(written, Vec::<&str>::new(), "{}", step.title);
        for file in &step.writes {
            assert!(!file.blocks.is_empty(), "{}", file.name);
        }
    }
}

/// The images are packed, wrapped into C, and registered by the object.
fn fat_binary_is_in_the_object(told: &Explanation) {
    let images = table(file(told, "case.fatbin"), "Images");
    assert_eq!(column(images, "target"), ["sm_80", "sm_90", "compute_90"]);
    let c_form = file(told, "case.fatbin.c");
    assert_eq!(fact(c_form, "magic"), "0x466243b1");
    assert!(fact(c_form, "version").starts_with("1:"));
    assert_eq!(fact(c_form, "pointer to the fat binary"), "fatbinData");

    let object = file(told, "out.o");
    assert_eq!(object.role, Role::Output);
    let wrappers = table(object, "Wrappers");
    assert_eq!(column(wrappers, "magic"), ["0x466243b1"]);
    assert_eq!(column(wrappers, "fat binary"), ["fatbinData"]);
    assert_eq!(
        column(table(object, "What runs before main"), "function"),
        ["__sti____cudaRegisterAll()"]
    );
    // The id is named after a symbol that exists.
    assert!(words(object).contains("_Z5scalePff"), "{}", words(object));
    let sections = column(table(object, "Sections"), "section");
    assert!(sections.contains(&".nv_fatbin") && sections.contains(&".nvFatBinSegment"));
}

#[test]
fn one_file_for_two_architectures_agrees_with_its_files() {
    for toolkit in Toolkit::chosen() {
        let space = TestSpace::with_toolkit("explain-two", toolkit);
        space.write("case.cu", KERNEL);
        let args = format!("-c case.cu -o out.o {TWO}");
        let (_, kept) = reference(&space, &args);
        let object = space.read("out.o");
        space.remove("out.o");
        let told = explanation(&space, &args);
        assert!(space.read("out.o") == object, "the object is nvcc's");
        demand_whole(&told);
        assert_eq!(told.steps.len(), oracle::commands(&space, &args));
        assert!(
            told.toolkit
                .as_deref()
                .is_some_and(|version| version.starts_with(space.toolkit.name))
        );

        let id = kept_text(&kept, "case.module_id");
        let module_id = file(&told, "case.module_id");
        assert_eq!(fact(module_id, "module id"), id.trim_end());
        assert!(column(table(module_id, "What it is made of"), "what it is")[0].contains("agrees"));

        let host = file(&told, "case.compute_90.cudafe1.cpp");
        let launches = table(host, "Launches");
        assert_eq!(column(launches, "line"), ["9"]);
        assert_eq!(
            column(launches, "you wrote"),
            ["scale<<<1, 32>>>(p, 2.0f);"]
        );
        let became = column(launches, "cudafe++ wrote")[0];
        assert!(
            became.contains("__cudaPushCallConfiguration(1, 32)"),
            "{became}"
        );
        assert!(
            kept_text(&kept, "case.compute_90.cudafe1.cpp").contains(became),
            "{became}"
        );

        // The stub that is compiled is that of the last architecture.
        let stub = file(&told, "case.compute_90.cudafe1.stub.c");
        let registered = table(stub, "What is registered");
        assert_eq!(
            column(registered, "in the fat binary"),
            ["_Z5scalePff", "launches"]
        );
        assert_eq!(
            column(registered, "function of the runtime"),
            ["__cudaRegisterFunction", "__cudaRegisterVar"]
        );
        assert!(words(stub).contains("__cudaLaunch("));

        for (ptx, cubin) in [
            ("case.compute_80.ptx", "case.compute_80.cubin"),
            ("case.compute_90.ptx", "case.compute_90.sm_90.cubin"),
        ] {
            let entries = column(table(file(&told, ptx), "Entry points"), "symbol");
            assert_eq!(entries, ["_Z5scalePff"]);
            assert!(kept_text(&kept, ptx).contains(&format!(".entry {}(", entries[0])));
            let functions = table(file(&told, cubin), "Kernels");
            let registers = oracle::registers(&kept.join(cubin));
            assert_eq!(
                column(functions, "registers"),
                [registers["_Z5scalePff"].as_str()]
            );
        }

        fat_binary_is_in_the_object(&told);
    }
}

/// The kernels and registers of the linked device code are those that cuobjdump finds.
fn linked_cubins_agree_with_cuobjdump(told: &Explanation, kept: &Path) {
    for (cubin, arch) in [
        ("prog_dlink.compute_80.cubin", "sm_80"),
        ("prog_dlink.compute_90.cubin", "sm_90"),
    ] {
        let explanation = file(told, cubin);
        assert_eq!(fact(explanation, "architecture"), arch);
        assert_eq!(fact(explanation, "state"), "ready to be loaded");
        let functions = table(explanation, "Kernels");
        // cuobjdump prints 0 for functions that are no kernels, from sm_90 on.
        let known = oracle::registers(&kept.join(cubin));
        let known: Vec<_> = known
            .into_iter()
            .filter(|(_, number)| number != "0")
            .collect();
        assert!(
            known.iter().any(|(name, _)| name == "_Z1kIfEvPT_"),
            "{known:?}"
        );
        for (function, registers) in known {
            let at = column(functions, "symbol")
                .iter()
                .position(|s| *s == function);
            let at = at.unwrap_or_else(|| panic!("{function} is not told of"));
            assert_eq!(column(functions, "registers")[at], registers);
        }
    }
}

/// The constructors are those that the program has, in the order in which they run.
fn constructors_are_in_order(space: &TestSpace, program: &FileExplanation) {
    let order = table(program, "What runs before main");
    let expected = oracle::constructors(&space.work().join("prog"));
    let told_order: Vec<String> = column(order, "function")
        .iter()
        .map(|name| name.trim_end_matches("()").to_owned())
        .collect();
    let known: Vec<&String> = expected
        .iter()
        .filter(|name| name.contains("cudaRegister"))
        .collect();
    assert_eq!(known.len(), 2, "{expected:?}");
    assert_eq!(told_order.len(), expected.len());
    for (told, expected) in told_order.iter().zip(&expected) {
        assert!(expected.contains(told.as_str()), "{told} is {expected}");
    }
    let sources = column(order, "of");
    let at = |name: &str| sources.iter().position(|source| source.starts_with(name));
    assert!(at("a.compute_90") < at("b.compute_90"), "{sources:?}");
}

#[test]
fn a_program_of_relocatable_code_is_linked_twice() {
    for toolkit in Toolkit::chosen() {
        let space = TestSpace::with_toolkit("explain-rdc", toolkit);
        space.write(
            "a.cu",
            "extern __device__ float twice(float);\n\
             template <typename T> __global__ void k(T *p) { *p = twice(*p); }\n\
             struct Loud { Loud() { counter = 1; } int counter; } loud;\n\
             int main() { k<float><<<1, 1>>>(nullptr); }\n",
        );
        space.write(
            "b.cu",
            "__device__ float twice(float x) { return x + x; }\n",
        );
        let args = "-rdc=true a.cu b.cu -o prog -gencode arch=compute_80,code=sm_80 \
                    -gencode arch=compute_90,code=sm_90";
        let (_, kept) = reference(&space, args);
        let program = space.read("prog");
        space.remove("prog");
        let told = explanation(&space, args);
        assert!(space.read("prog") == program, "the program is nvcc's");
        demand_whole(&told);

        let ids = ["a", "b"].map(|name| kept_text(&kept, &format!("{name}.module_id")));
        let names = file(&told, "prog_dlink.reg.c");
        assert_eq!(
            names.state,
            FileState::Changed,
            "a run of nvlink for each architecture"
        );
        let linked = column(table(names, "Objects"), "module id");
        assert_eq!(linked, ids.each_ref().map(|id| id.trim_end()));
        linked_cubins_agree_with_cuobjdump(&told, &kept);
        let c_form = file(&told, "prog_dlink.fatbin.c");
        assert!(fact(c_form, "version").starts_with("2:"));

        let program = file(&told, "prog");
        let wrappers = table(program, "Wrappers");
        let symbols = column(wrappers, "symbol");
        assert_eq!(symbols[0], "__fatDeviceText");
        for id in &linked {
            assert!(
                symbols.contains(&format!("__fatbinwrap{id}").as_str()),
                "{symbols:?}"
            );
        }
        constructors_are_in_order(&space, program);
    }
}

#[test]
fn several_files_and_kept_files_are_told() {
    let space = TestSpace::whole("explain-several");
    space.write("a.cu", KERNEL);
    space.write("host.cpp", "int answer() { return 42; }\n");
    let args = "-keep -c a.cu host.cpp -arch=sm_90";
    let told = explanation(&space, args);
    demand_whole(&told);
    assert!(space.exists("a.o") && space.exists("host.o") && space.exists("a.ptx"));
    assert_eq!(told.folder, "");
    assert_eq!(file(&told, "a.ptx").role, Role::Intermediate);
    assert_eq!(file(&told, "host.o").role, Role::Output);
    let plain = told.steps.last().expect("steps");
    assert!(plain.purpose.contains("No CUDA"), "{}", plain.purpose);
}

#[test]
fn link_time_optimisation_leaves_the_work_to_nvlink() {
    let space = TestSpace::whole("explain-lto");
    space.write(
        "a.cu",
        "__device__ int one();\n__global__ void k(int *p) { *p = one(); }\n",
    );
    space.write("b.cu", "__device__ int one() { return 1; }\n");
    let told = explanation(
        &space,
        "-dlto -arch=sm_90 -shared a.cu b.cu -o liba.so -Xcompiler -fPIC",
    );
    demand_whole(&told);
    assert_eq!(steps(&told, "ptxas").len(), 0);
    assert!(words(file(&told, "a.ltoir")).contains("NVVM IR"));
    let images = table(file(&told, "a.fatbin"), "Images");
    assert!(column(images, "kind").contains(&"lto"), "{images:?}");
    let linked = file(
        &told,
        "prog_dlink.sm_90.cubin".replace("prog", "liba").as_str(),
    );
    assert_eq!(column(table(linked, "Kernels"), "symbol"), ["_Z1kPi"]);
    assert_eq!(file(&told, "liba.so").what, "a shared library");
}

#[test]
fn ptx_alone_and_ptx_that_is_only_checked() {
    let space = TestSpace::whole("explain-ptx");
    space.write("case.cu", KERNEL);
    let told = explanation(&space, "-ptx case.cu -o case.ptx -arch=compute_90");
    demand_whole(&told);
    assert_eq!(
        column(table(file(&told, "case.ptx"), "Entry points"), "symbol"),
        ["_Z5scalePff"]
    );
    assert_eq!(fact(file(&told, "case.ptx"), "target"), "sm_90");

    let args = "-c case.cu -o case.o -gencode arch=compute_90,code=compute_90";
    let told = explanation(&space, args);
    demand_whole(&told);
    let check = steps(&told, "ptxas");
    assert_eq!((check.len(), check[0].writes.len()), (1, 0));
    assert!(
        check[0].title.starts_with("Check the PTX"),
        "{}",
        check[0].title
    );
    let images = table(file(&told, "case.fatbin"), "Images");
    assert_eq!(column(images, "kind"), ["ptx"]);
}

#[test]
fn a_failing_command_is_told_up_to_its_failure() {
    let space = TestSpace::whole("explain-error");
    space.write("case.cu", "__global__ void k() { undeclared(); }\n");
    let args = "-c case.cu -o case.o -arch=sm_90";
    let (expected, _) = reference(&space, args);
    let outcome = explain(&space, "--json", args);
    assert_eq!(outcome.code, expected.code);
    assert_eq!(outcome.stderr_text(), expected.stderr_text());
    let told: Explanation = serde_json::from_slice(&outcome.stdout).expect("an explanation");
    assert_eq!(told.exit_code, expected.code);
    let failed = told
        .steps
        .iter()
        .position(|step| step.outcome == CommandOutcome::Failed(expected.code))
        .expect("a failed step");
    assert!(told.steps[failed].stderr.contains("undeclared"));
    assert!(failed > 0 && told.steps[0].outcome == CommandOutcome::Ran);
    for later in &told.steps[failed + 1..] {
        assert_eq!(later.outcome, CommandOutcome::Skipped);
    }
    assert!(!space.exists("case.o"));

    let shown = explain(&space, "", args);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        text.contains("nvcc stops here") && text.contains("Not run"),
        "{text}"
    );
}

#[test]
fn the_terminal_gets_plain_pages() {
    let space = TestSpace::whole("explain-text");
    space.write("case.cu", KERNEL);
    let outcome = explain(&space, "", "-c case.cu -o case.o -arch=sm_90");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let text = String::from_utf8(outcome.stdout).expect("UTF-8");
    assert!(!text.contains('\u{1b}'));
    let pages = text
        .lines()
        .filter(|line| line.starts_with("Step "))
        .count();
    assert_eq!(pages, 7, "{text}");
    for expected in [
        "Step 2 of 7: Take the host's half out of case.cu",
        "  -arch compute_90\n",
        "  + case.ptx",
        "(__cudaPushCallConfiguration(1, 32)) ? (void)0 :",
        "__cudaRegisterFunction",
        "pointer to the fat binary  fatbinData",
        "What runs before main",
        "Made: case.o",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Sentences are wrapped; code, tables of names and paths may be longer.
    let wide = text
        .lines()
        .filter(|line| line.chars().count() > 100 && !line.contains(['/', '|', '=']));
    assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    let coloured = explain(
        &space,
        "--color",
        "-ptx case.cu -o case.ptx -arch=compute_90",
    );
    assert!(coloured.stdout.contains(&0x1b));
}
