//! Small random distortions of images, so that a recogniser does not remember them: turned, scaled, sheared and shifted.

use kinfolk::random::Stream;

/// The largest angle in radians, change of scale, shear, and shift as a share of the side.
const ANGLE: f32 = 0.25;
const ZOOM: f32 = 0.15;
const SHEAR: f32 = 0.2;
const SHIFT: f32 = 0.075;

/// Writes a distorted copy of an image with values from 0 to 1; beyond its edge it is zero.
pub fn distort(image: &[u8], side: usize, random: &mut Stream, out: &mut [f32]) {
    let mut draw = |most: f32| (2.0 * random.uniform_f32() - 1.0) * most;
    let (angle, zoom, shear) = (draw(ANGLE), 1.0 + draw(ZOOM), draw(SHEAR));
    let shift = [draw(SHIFT), draw(SHIFT)].map(|share| share * side as f32);
    let (sin, cos) = (angle.sin() * zoom, angle.cos() * zoom);
    let middle = (side as f32 - 1.0) / 2.0;
    for (y, row) in out.chunks_exact_mut(side).enumerate() {
        let v = y as f32 - middle;
        for (x, value) in row.iter_mut().enumerate() {
            let u = x as f32 - middle;
            let from =
                [cos * u + (shear - sin) * v + shift[0] + middle, sin * u + cos * v + shift[1] + middle];
            *value = between(image, side, from);
        }
    }
}

/// The value at a place between pixels, by its four neighbours.
fn between(image: &[u8], side: usize, [x, y]: [f32; 2]) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (u, v) = (x - left, y - top);
    let (left, top) = (left as i32, top as i32);
    let at = |x: i32, y: i32| match (usize::try_from(x), usize::try_from(y)) {
        (Ok(x), Ok(y)) if x < side && y < side => f32::from(image[y * side + x]),
        _ => 0.0,
    };
    let upper = at(left, top) * (1.0 - u) + at(left + 1, top) * u;
    let lower = at(left, top + 1) * (1.0 - u) + at(left + 1, top + 1) * u;
    (upper * (1.0 - v) + lower * v) / 255.0
}
