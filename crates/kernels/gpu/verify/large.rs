//! Arrays beyond 2^31 elements: kernels over them are right at their ends, at 2^31 and 2^32 bytes, and between.

use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::{Value, tuned};
use warpcc_kernels::parse::parse;
use warpcc_kernels::plan::{Plan, Tensor, Tuning, WriteMode};

use crate::device::{BASE, Device, Failure, Kernel};

/// An array of more than 2^31 elements of one byte or two, in a pattern that repeats.
pub struct Large {
    pub label: &'static str,
    pub plan: Plan,
    size: u64,
    period: u64,
    input: u64,
    output: u64,
    bytes: u64,
    /// The output's byte from the input's and its number in the array.
    formula: fn(u8, u64) -> u8,
    second: Option<(u64, Vec<u8>)>,
}

pub fn large() -> Vec<Large> {
    const N: u64 = (1 << 31) + 1003;
    let mut all = Vec::new();
    let mut add =
        |label, text: &str, inputs: &[Tensor], output: Tensor, period, formula, second| {
            let values: Vec<(&str, Value)> = ["a", "b"]
                .into_iter()
                .zip(inputs.iter().map(Value::from))
                .collect();
            let Ok(expr) = parse(text) else { return };
            if let Ok(plan) = tuned(&expr, &values, &output, WriteMode::Write, Tuning::default()) {
                let size = output.dtype.size();
                all.push(Large {
                    label,
                    plan,
                    size,
                    period,
                    input: inputs.first().map_or(BASE, |t| t.address),
                    output: output.address,
                    bytes: output.shape.iter().product::<u64>() * size,
                    formula,
                    second,
                });
            }
        };
    let far = BASE + (6 << 30);
    let beyond = BASE + (12 << 30);
    add(
        "uint8, 2^31 + 1003 elements, off by 3 and 1",
        "255 - a",
        &[Tensor::new(DType::U8, &[N], BASE + 3)],
        Tensor::new(DType::U8, &[N], far + 1),
        1013,
        |byte, _| 255 - byte,
        None,
    );
    add(
        "float16, 2^31 + 1003 elements",
        "-a",
        &[Tensor::new(DType::F16, &[N], BASE)],
        Tensor::new(DType::F16, &[N], far),
        2 * 1013,
        |byte, number| if number % 2 == 1 { byte ^ 0x80 } else { byte },
        None,
    );
    let (rows, columns) = (524_301u64, 4099u64);
    add(
        "uint8, 524301 x 4099 and a row of 4099, broadcast",
        "a ^ b",
        &[
            Tensor::new(DType::U8, &[rows, columns], BASE),
            Tensor::new(DType::U8, &[columns], beyond),
        ],
        Tensor::new(DType::U8, &[rows, columns], far),
        1013,
        |byte, number| byte ^ ((number % 4099) as u8).wrapping_mul(7),
        Some((
            beyond,
            (0..4099u64).map(|i| (i as u8).wrapping_mul(7)).collect(),
        )),
    );
    all
}

fn pattern(period: u64, size: u64) -> impl Fn(u64) -> u8 {
    move |place| {
        let byte = ((place % period).wrapping_mul(2_654_435_761) >> 7) as u8;
        // A half whose exponent is all ones may be NaN, whose payload a conversion need not keep.
        if size == 2 && place % 2 == 1 {
            byte & 0x3b
        } else {
            byte
        }
    }
}

/// Runs it and looks at its ends, at 2^31 and 2^32 bytes, and at places between.
pub fn check(device: &Device, kernel: &Kernel, large: &Large) -> Result<(), Failure> {
    if device.size() < (13 << 30) {
        return Err("this GPU has too little memory for it".to_owned());
    }
    let input = pattern(large.period, large.size);
    let mut filled = large.period * 65536;
    let block: Vec<u8> = (0..filled).map(&input).collect();
    device.upload(large.input, &block)?;
    while filled < large.bytes {
        let more = filled.min(large.bytes - filled);
        device.copy(large.input + filled, large.input, more)?;
        filled += more;
    }
    if let Some((at, bytes)) = &large.second {
        device.upload(*at, bytes)?;
    }
    device.fill(large.output - 1, 0xa5, large.bytes + 2)?;
    let launch = large.plan.launches.first().ok_or("nothing to run")?;
    device.start(kernel, launch, BASE)?;
    device.wait()?;
    let mut guards = [0u8; 1];
    for at in [large.output - 1, large.output + large.bytes] {
        device.download(at, &mut guards)?;
        if guards[0] != 0xa5 {
            return Err(format!("it wrote beyond its output, at {at:#x}"));
        }
    }
    let window = 4u64 << 20;
    let last = large.bytes - window;
    let starts = [
        0,
        (1 << 31) - window / 2,
        (1u64 << 32) - window / 2,
        last / 3,
        last / 2,
        last - 12345,
        last,
    ];
    let mut bytes = vec![0u8; window as usize];
    for start in starts {
        let start = start.min(last);
        device.download(large.output + start, &mut bytes)?;
        for (place, byte) in (start..).zip(&bytes) {
            let want = (large.formula)(input(place), place);
            if *byte != want {
                return Err(format!("byte {place}: {byte:#x}, expected {want:#x}"));
            }
        }
    }
    Ok(())
}
