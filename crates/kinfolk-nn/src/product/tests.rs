use super::*;
use proptest::prelude::*;
use std::time::Instant;

/// In double precision, one element after the other.
fn slow(left: Matrix, right: Matrix) -> Vec<f64> {
    let at = |m: Matrix, row: usize, column: usize| {
        let (across, along) = if m.transposed { (column, row) } else { (row, column) };
        f64::from(m.values[across * m.stride + along])
    };
    let mut out = Vec::new();
    for row in 0..left.rows {
        for column in 0..right.columns {
            out.push((0..left.columns).map(|k| at(left, row, k) * at(right, k, column)).sum());
        }
    }
    out
}

fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Products of numbers in -1..1: what halves of bfloat16 lose of each is below 2^-15.
fn close(found: &[f32], expected: &[f64], inner: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let allowed = 3e-5 * (inner as f64).sqrt() + 1e-6;
        prop_assert!((f64::from(found) - expected).abs() <= allowed, "at {at}: {found}, expected {expected}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn products_are_those_of_the_definition(
        rows in 1usize..100,
        inner in 1usize..1200,
        columns in 1usize..100,
        turned in any::<[bool; 2]>(),
        seed in any::<u64>(),
    ) {
        let (a, b) = (random(rows * inner, seed), random(inner * columns, seed ^ 1));
        let side = |values, [rows, columns]: [usize; 2], turned: bool| {
            let matrix = Matrix::new(values, if turned { rows } else { columns });
            if turned { matrix.transpose() } else { matrix }
        };
        let (left, right) = (side(&a, [rows, inner], turned[0]), side(&b, [inner, columns], turned[1]));
        let expected = slow(left, right);
        let found = product(left, right, |_, _| {});
        close(&found, &expected, inner)?;
        let mut plain = vec![0.0; rows * columns];
        multiply_plain(left, right, &mut plain);
        close(&plain, &expected, inner)?;
        // A part of the rows, written over something, is the part of the product.
        let mut last = vec![9.0; columns];
        multiply(left.part(rows - 1, 1), &Right::new(right), &mut last);
        prop_assert_eq!(&last[..], &found[(rows - 1) * columns..]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let (a, b) = (random(333 * 200, 1), random(200 * 77, 2));
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| product(Matrix::new(&a, 200), Matrix::new(&b, 77), |_, _| {}))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn what_is_not_a_number_stays_visible() {
    for broken in [f32::NAN, f32::INFINITY] {
        let out = product(Matrix::new(&[1.0, broken], 2), Matrix::new(&[1.0, 1.0], 1), |_, _| {});
        assert!(!out[0].is_finite(), "{out:?}");
    }
}

/// Prints billions of operations a second on one thread.
#[test]
#[ignore = "a measurement"]
fn speed_of_products() {
    let (a, b) = (random(512 * 512, 1), random(512 * 512, 2));
    let (left, right) = (Matrix::new(&a, 512), Matrix::new(&b, 512));
    let prepared = Right::new(right);
    let mut out = vec![0.0; 512 * 512];
    let mut best = |name: &str, run: &mut dyn FnMut(&mut [f32])| {
        let seconds = (0..30).map(|_| {
            let start = Instant::now();
            run(&mut out);
            start.elapsed().as_secs_f64()
        });
        println!("{name}: {:.0} GFLOP/s", 2.0 * 512f64.powi(3) / 1e9 / seconds.fold(f64::MAX, f64::min));
    };
    best("prepared", &mut |out| multiply(left, &prepared, out));
    best("with preparation", &mut |out| multiply(left, &Right::new(right), out));
    best("both transposed", &mut |out| multiply(left.transpose(), &Right::new(right.transpose()), out));
    best("gemm crate", &mut |out| multiply_plain(left, right, out));
}
